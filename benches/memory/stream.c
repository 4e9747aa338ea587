/* Bandwidth of memory in C, after the manner of STREAM: `stream KIB REPEATS`.
 *
 * The other side of the probe's loops: plain C on vectors of the widest register, as an optimising compiler translates it, over two arrays
 * of KIB each in huge pages. Prints a line for each loop: its name and the best of the repeats in bytes per second, every byte
 * counted once. The loops take turns, each repeat after an untimed pass; repeats in which the CPU was taken away do not count, and a
 * loop of which none counts has 0.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#ifdef __AVX512F__
typedef uint64_t vector __attribute__((vector_size(64), may_alias));
#else
typedef uint64_t vector __attribute__((vector_size(32), may_alias));
#endif

/* The second array does not begin a power of two after the first, where both would share banks of the memory. */
enum { HUGE_PAGE = 2 << 20, BETWEEN = 320 << 10, AT_LEAST = 64 << 20, LOOPS = 4 };

static const char *const names[LOOPS] = {"read", "write", "copy-vector", "copy-library"};

static double seconds(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void once(int loop, uint8_t *from, uint8_t *to, size_t bytes) {
    const vector *in = (const vector *)from;
    vector *out = (vector *)to;
    size_t count = bytes / sizeof(vector);
    switch (loop) {
    case 0: {
        vector sums[4] = {{0}};
        for (size_t at = 0; at < count; at += 4)
            for (size_t lane = 0; lane < 4; lane++) sums[lane] ^= in[at + lane];
        sums[0] ^= sums[1] ^ sums[2] ^ sums[3];
        /* What was read is used. */
        __asm__ volatile("" : : "m"(sums[0]));
        break;
    }
    case 1: {
        vector value = (vector){0} + bytes;
        for (size_t at = 0; at < count; at += 2) {
            out[at] = value;
            out[at + 1] = value;
            /* Else the compiler may call memset, which may do as it likes. */
            __asm__ volatile("" : : : "memory");
        }
        break;
    }
    case 2:
        for (size_t at = 0; at < count; at += 2) {
            vector one = in[at], two = in[at + 1];
            out[at] = one;
            out[at + 1] = two;
            __asm__ volatile("" : : : "memory");
        }
        break;
    default:
        memcpy(to, from, bytes);
        __asm__ volatile("" : : : "memory");
    }
}

int main(int count, char **given) {
    if (count != 3 || atol(given[1]) < 1 || atoi(given[2]) < 1) {
        fprintf(stderr, "usage: stream KIB REPEATS\n");
        return 2;
    }
    size_t bytes = (size_t)atol(given[1]) << 10;
    int repeats = atoi(given[2]);
    size_t whole = 2 * bytes + BETWEEN + 2 * HUGE_PAGE;
    uint8_t *memory = mmap(0, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        perror("stream");
        return 1;
    }
    madvise(memory, whole, MADV_HUGEPAGE);
    uint8_t *from = (uint8_t *)(((uintptr_t)memory + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1));
    uint8_t *to = from + bytes + BETWEEN;
    memset(from, 1, bytes);
    memset(to, 2, bytes);
    size_t times = AT_LEAST / bytes > 0 ? AT_LEAST / bytes : 1;
    double best[LOOPS] = {0};
    for (int repeat = 0; repeat < repeats; repeat++)
        for (int loop = 0; loop < LOOPS; loop++) {
            once(loop, from, to, bytes);
            double begin = seconds(CLOCK_MONOTONIC), begin_cpu = seconds(CLOCK_THREAD_CPUTIME_ID);
            for (size_t time = 0; time < times; time++) once(loop, from, to, bytes);
            double cpu = seconds(CLOCK_THREAD_CPUTIME_ID) - begin_cpu, took = seconds(CLOCK_MONOTONIC) - begin;
            double rate = (double)bytes * (double)times / took;
            if (took <= 1.02 * cpu && rate > best[loop]) best[loop] = rate;
        }
    for (int loop = 0; loop < LOOPS; loop++) printf("%s %.0f\n", names[loop], best[loop]);
    return 0;
}
