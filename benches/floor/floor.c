/* What this machine allows a driver of TUN devices at best: nothing between reading and writing, nothing but waiting.
 *
 *   floor forward NETNS NETNS DEVICE super|single   carry packets between two TUN devices, read by read, until standard input ends; prints `up` first
 *                                                   (`super`: the kernel hands over and takes super-packets)
 *   floor late sleep|spin SECONDS PERIOD            about every PERIOD ns, how late a thread is that waits until then: p50, p99, p99.9, and
 *                                                   the standard deviation of what is wrong with the gaps between its instants, in ns
 *
 * The other side of what the driver of the emulation is asked for, measured in the same run.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#ifndef TUN_F_USO4
#define TUN_F_USO4 0x20
#define TUN_F_USO6 0x40
#endif

enum { LONGEST = 70000, VNET_HEADER = 12 };

struct way {
    int from, to;
};

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static int device(const char *namespace, const char *name, int super)
{
    char path[256];
    snprintf(path, sizeof path, "/run/netns/%s", namespace);
    int place = open(path, O_RDONLY | O_CLOEXEC);
    if (place < 0 || setns(place, CLONE_NEWNET))
        fail(path);
    close(place);
    int file = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (file < 0)
        fail("/dev/net/tun");
    struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR};
    strncpy(request.ifr_name, name, IFNAMSIZ - 1);
    int header = VNET_HEADER;
    unsigned tcp = TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6, both = tcp | TUN_F_USO4 | TUN_F_USO6;
    if (ioctl(file, TUNSETIFF, &request) || ioctl(file, TUNSETVNETHDRSZ, &header))
        fail(name);
    if (ioctl(file, TUNSETOFFLOAD, super ? both : 0) && ioctl(file, TUNSETOFFLOAD, super ? tcp : 0))
        fail("offloads");
    return file;
}

static void *carry(void *argument)
{
    const struct way *way = argument;
    static __thread char buffer[LONGEST];
    struct pollfd wait = {.fd = way->from, .events = POLLIN};
    for (;;) {
        ssize_t length = read(way->from, buffer, sizeof buffer);
        if (length > 0)
            /* What finds no room is lost, as on any line. */
            (void)!write(way->to, buffer, (size_t)length);
        else if (errno == EAGAIN)
            poll(&wait, 1, -1);
        else
            return NULL;
    }
}

static int forward(char **words, int super)
{
    int a = device(words[0], words[2], super), b = device(words[1], words[2], super);
    struct way there = {a, b}, back = {b, a};
    pthread_t threads[2];
    if (pthread_create(&threads[0], NULL, carry, &there) || pthread_create(&threads[1], NULL, carry, &back))
        fail("a thread");
    puts("up");
    fflush(stdout);
    char byte;
    while (read(STDIN_FILENO, &byte, 1) > 0)
        ;
    return 0;
}

static int ascending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int late(int spin, int64_t seconds, int64_t period)
{
    if (seconds < 1 || period < 1000)
        return 2;
    int64_t count = seconds * 1000000000 / period, due = now() + period;
    unsigned short seed[3] = {1, 2, 3};
    int64_t *lates = malloc((size_t)count * sizeof *lates);
    if (!lates || count < 2)
        return 2;
    prctl(PR_SET_TIMERSLACK, 1);
    double squares = 0;
    for (int64_t i = 0; i < count; i++) {
        struct timespec until = {.tv_sec = due / 1000000000, .tv_nsec = due % 1000000000};
        if (!spin)
            clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
        int64_t then;
        while ((then = now()) < due)
            ;
        lates[i] = then - due;
        /* A gap is wrong by how much later its end is than its begin. */
        double differs = i ? (double)(lates[i] - lates[i - 1]) : 0;
        squares += differs * differs;
        /* Not in step with the kernel's tick: a thread whose instants are is never late by it, or always. */
        due += period / 2 + nrand48(seed) % period;
    }
    double deviation = sqrt(squares / (double)(count - 1));
    qsort(lates, (size_t)count, sizeof *lates, ascending);
    printf("%ld %ld %ld %.0f\n", (long)lates[count / 2], (long)lates[count * 99 / 100], (long)lates[count * 999 / 1000],
           deviation);
    return 0;
}

int main(int count, char **words)
{
    if (count == 6 && !strcmp(words[1], "forward"))
        return forward(words + 2, !strcmp(words[5], "super"));
    if (count == 5 && !strcmp(words[1], "late"))
        return late(!strcmp(words[2], "spin"), atol(words[3]), atol(words[4]));
    fputs("floor forward NETNS NETNS DEVICE super|single\nfloor late sleep|spin SECONDS PERIOD\n", stderr);
    return 2;
}
