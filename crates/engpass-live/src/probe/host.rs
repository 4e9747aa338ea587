//! Properties of this host: processor, caches, memory, kernel.

use std::fs;
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

/// A cache of the first CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CacheLevel {
    /// Cache level, 1 to 4.
    pub level: u32,
    /// `Data`, `Instruction` or `Unified`.
    pub kind: String,
    /// Size in bytes.
    pub bytes: u64,
    /// CPUs that share it, in the kernel's list format: `0-3,8`.
    pub shared_by: String,
}

/// Properties of the host, as far as the kernel reports them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Host {
    /// Name of the processor.
    pub cpu: String,
    /// Number of CPUs that the probe may use.
    pub cpus: usize,
    /// Caches of the first CPU, from the first level on.
    pub caches: Vec<CacheLevel>,
    /// Memory of the host in bytes.
    pub memory_bytes: u64,
    /// Memory available to programs in bytes.
    pub available_bytes: u64,
    /// Kernel version.
    pub kernel: String,
    /// Clock source of the kernel, such as `tsc` or `kvm-clock`.
    pub clock_source: String,
    /// Whether the host is a virtual machine.
    pub virtual_machine: bool,
    /// Load average of the last minute when the probe began. Above a few tenths, other programs were running.
    pub load: String,
}

/// Reads the properties from the file system below `root` (`/`, except in tests).
pub(super) fn host(root: &Path, cpus: usize) -> Host {
    let read = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_default().trim().to_owned();
    let about = read("proc/cpuinfo");
    let value = |key: &str| {
        let line = about.lines().find(|line| line.split(':').next().is_some_and(|name| name.trim() == key));
        line.and_then(|line| line.split_once(':')).map_or(String::new(), |(_, value)| value.trim().to_owned())
    };
    let memory = read("proc/meminfo");
    let kib = |key: &str| {
        let line = memory.lines().find(|line| line.starts_with(key)).unwrap_or_default();
        line.split_whitespace().nth(1).and_then(|number| number.parse::<u64>().ok()).unwrap_or(0) << 10
    };
    Host {
        cpu: value("model name"),
        cpus,
        caches: caches(root),
        memory_bytes: kib("MemTotal:"),
        available_bytes: kib("MemAvailable:"),
        kernel: read("proc/sys/kernel/osrelease"),
        clock_source: read("sys/devices/system/clocksource/clocksource0/current_clocksource"),
        virtual_machine: value("flags").split_whitespace().any(|flag| flag == "hypervisor"),
        load: read("proc/loadavg").split_whitespace().next().unwrap_or_default().to_owned(),
    }
}

/// Returns how long (ns, since boot) these CPUs have run programs or the kernel, or waited for a hypervisor. Interrupts are left out because they may serve
/// the caller's own packets. `None` if the kernel does not report all of these CPUs.
pub(super) fn busy(root: &Path, cpus: &[usize]) -> Option<u64> {
    let text = fs::read_to_string(root.join("proc/stat")).ok()?;
    let of = |cpu: &usize| {
        let mut words =
            text.lines().find_map(|line| line.strip_prefix(&format!("cpu{cpu} ")))?.split_whitespace();
        // user, nice, system, idle, iowait, irq, softirq, steal
        let mut next = |skip| words.nth(skip)?.parse::<u64>().ok();
        Some(next(0)? + next(0)? + next(0)? + next(4).unwrap_or(0))
    };
    let ticks: Option<Vec<u64>> = cpus.iter().map(of).collect();
    Some(ticks?.into_iter().sum::<u64>() * super::sys::tick())
}

impl Host {
    /// Returns the size of the last-level data cache in bytes; 32 MiB if unknown.
    pub fn last_cache(&self) -> u64 {
        let data = self.caches.iter().filter(|cache| cache.kind != "Instruction");
        data.max_by_key(|cache| cache.level).map_or(32 << 20, |cache| cache.bytes)
    }
}

fn caches(root: &Path) -> Vec<CacheLevel> {
    let base = root.join("sys/devices/system/cpu/cpu0/cache");
    (0..)
        .map(|index| base.join(format!("index{index}")))
        .take_while(|folder| folder.is_dir())
        .filter_map(|folder| {
            let read =
                |name: &str| fs::read_to_string(folder.join(name)).ok().map(|text| text.trim().to_owned());
            let size = read("size")?;
            let unit = match size.chars().last()? {
                'K' => 1 << 10,
                'M' => 1 << 20,
                _ => 1,
            };
            Some(CacheLevel {
                level: read("level")?.parse().ok()?,
                kind: read("type")?,
                bytes: size.trim_end_matches(['K', 'M']).parse::<u64>().ok()? * unit,
                shared_by: read("shared_cpu_list").unwrap_or_default(),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::temp_dir::Folder;
    use super::*;

    #[test]
    fn busy_time_is_summed_over_the_given_cpus() {
        let stat = "cpu  9 9 9 9\ncpu0 100 20 3 5000 70 80 90 4000 1 1\ncpu1 1 1 1 1 1 1 1 1\ncpu10 7 7 7 7 7 7 7 7\nintr 5\n";
        let root = Folder::new(&[("proc/stat", stat)]);
        let tick = super::super::sys::tick();
        assert_eq!(busy(root.path(), &[0]), Some(4123 * tick));
        assert_eq!(busy(root.path(), &[0, 10]), Some((4123 + 28) * tick));
        assert_eq!(busy(root.path(), &[0, 2]), None);
    }

    #[test]
    fn host_is_read_from_proc_and_sys() {
        let root = Folder::new(&[
            ("proc/cpuinfo", "processor\t: 0\nmodel name\t: Some CPU\nflags\t\t: fpu hypervisor\n"),
            ("proc/meminfo", "MemTotal:       1024 kB\nMemFree: 1 kB\nMemAvailable:    512 kB\n"),
            ("proc/sys/kernel/osrelease", "6.1.0\n"),
            ("sys/devices/system/cpu/cpu0/cache/index0/size", "32K\n"),
            ("sys/devices/system/cpu/cpu0/cache/index0/level", "1\n"),
            ("sys/devices/system/cpu/cpu0/cache/index0/type", "Data\n"),
            ("sys/devices/system/cpu/cpu0/cache/index1/size", "16M\n"),
            ("sys/devices/system/cpu/cpu0/cache/index1/level", "3\n"),
            ("sys/devices/system/cpu/cpu0/cache/index1/type", "Unified\n"),
        ]);
        let found = host(root.path(), 4);
        assert_eq!((found.cpu.as_str(), found.cpus, found.virtual_machine), ("Some CPU", 4, true));
        assert_eq!((found.memory_bytes, found.available_bytes), (1 << 20, 1 << 19));
        assert_eq!((found.last_cache(), found.caches.len(), found.caches[0].bytes), (16 << 20, 2, 32 << 10));
        let empty = Folder::new(&[]);
        assert_eq!(busy(empty.path(), &[0]), None);
        assert_eq!(host(empty.path(), 1).last_cache(), 32 << 20);
    }
}
