package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// availableMemory returns the bytes that this process may still use: the least of what
// the machine has available and what its control groups leave. 0 means unknown.
func availableMemory() int64 {
	least := meminfo()
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return least
	}
	for line := range strings.Lines(string(text)) {
		group, ok := strings.CutPrefix(strings.TrimSpace(line), "0::")
		for ok && group != "" {
			dir := filepath.Join("/sys/fs/cgroup", group)
			if limit := number(dir + "/memory.max"); limit > 0 {
				used := number(dir+"/memory.current") - field(dir+"/memory.stat", "inactive_file", 1)
				least = min(least, max(limit-used, 1))
			}
			if group == "/" {
				break
			}
			group = filepath.Dir(group)
		}
	}
	return least
}

// meminfo returns MemAvailable in bytes.
func meminfo() int64 { return field("/proc/meminfo", "MemAvailable:", 1<<10) }

// field returns the number that follows a name in a file of lines, times unit; 0 if it
// is not there.
func field(path, name string, unit int64) int64 {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == name {
			n, _ := strconv.ParseInt(f[1], 10, 64)
			return n * unit
		}
	}
	return 0
}

// number returns the number that a file holds, 0 if it holds none, such as "max".
func number(path string) int64 {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	n, _ := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n
}
