// The kernel's types and fields that its unwinder reads.  The loader sets the offsets from the
// running kernel's BTF (CO-RE).  This file replaces a generated vmlinux.h.
//
// The fields are those of Linux 5.18 to 6.18: include/linux/sched.h, arch/x86/include/asm/ptrace.h.
// SPDX-License-Identifier: MIT OR GPL-2.0-only
#pragma once

#include <stdbool.h>
#include <stdint.h>

// Type names that libbpf's headers expect, from include/uapi/asm-generic/int-ll64.h and
// linux/types.h.
typedef uint8_t __u8;
typedef uint16_t __u16;
typedef uint32_t __u32;
typedef uint64_t __u64;
typedef int32_t __s32;
typedef int64_t __s64;
typedef uint16_t __be16;
typedef uint32_t __be32;
typedef uint32_t __wsum;

// include/uapi/linux/bpf.h
enum {
  BPF_MAP_TYPE_HASH = 1,
  BPF_MAP_TYPE_ARRAY = 2,
  BPF_MAP_TYPE_PERCPU_ARRAY = 6,
  BPF_MAP_TYPE_LRU_HASH = 9,
  BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
  BPF_MAP_TYPE_RINGBUF = 27,
  BPF_MAP_TYPE_TASK_STORAGE = 29,
};
enum { BPF_ANY, BPF_NOEXIST };
enum { BPF_F_NO_PREALLOC = 1 << 0, BPF_F_MMAPABLE = 1 << 10 };
enum { BPF_LOCAL_STORAGE_GET_F_CREATE = 1 << 0 };
enum { BPF_RB_NO_WAKEUP = 1 << 0, BPF_RB_FORCE_WAKEUP = 1 << 1 };
enum { BPF_RB_AVAIL_DATA };

// include/linux/sched.h
enum { PF_EXITING = 0x4, PF_KTHREAD = 0x200000 };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct super_block {
  uint32_t s_dev;
};

struct inode {
  struct super_block* i_sb;
  unsigned long i_ino;
};

struct file {
  struct inode* f_inode;
};

struct vm_area_struct {
  unsigned long vm_start, vm_pgoff;
  struct file* vm_file;
};

// kernel/events/uprobes.c, include/linux/uprobes.h
struct xol_area {
  unsigned long vaddr;
};

struct uprobes_state {
  struct xol_area* xol_area;
};

struct return_instance {
  unsigned long stack, orig_ret_vaddr;
  struct return_instance* next;
};

struct uprobe_task {
  struct return_instance* return_instances;
};

struct mm_struct {
  unsigned long start_code, arg_start, arg_end;
  struct file* exe_file;
  struct uprobes_state uprobes_state;
};

typedef struct {
  int counter;
} atomic_t;

typedef struct {
  unsigned long sig[1];
} sigset_t;

struct sigpending {
  sigset_t signal;
};

struct signal_struct {
  atomic_t live;
  struct sigpending shared_pending;
};

struct sched_entity {
  uint64_t sum_exec_runtime;
};

// arch/x86/include/asm/processor.h
struct thread_struct {
  unsigned long fsbase;
};

struct sched_info {
  unsigned long run_delay;  // CO-RE reads it with the kernel's size
  unsigned long last_arrival, last_queued;
};

struct task_struct {
  unsigned int __state;
  unsigned int on_cpu;  // it became smaller, and libbpf adapts only unsigned ones
  struct sched_entity se;
  struct sched_info sched_info;
  unsigned int flags;
  struct mm_struct* mm;
  int pid;
  int tgid;
  struct task_struct* real_parent;
  uint32_t self_exec_id;
  struct signal_struct* signal;
  sigset_t blocked;
  struct sigpending pending;
  struct thread_struct thread;
  struct uprobe_task* utask;
};

struct pt_regs {
  unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax;
  unsigned long ip, cs, flags, sp, ss;
};

// include/linux/perf_event.h
struct perf_event {
  struct perf_event* parent;
  uint64_t bpf_cookie;
};

struct bpf_perf_event_data_kern {
  struct perf_event* event;
};

struct seq_file;

struct bpf_iter_meta {
  struct seq_file* seq;
};

struct bpf_iter__task {
  struct bpf_iter_meta* meta;
  struct task_struct* task;
};

#pragma clang attribute pop

/// include/uapi/linux/bpf_perf_event.h.  It is the same in every kernel, which converts accesses.
struct bpf_perf_event_data {
  uint64_t regs[21];  ///< struct pt_regs
  uint64_t sample_period;
  uint64_t addr;
};
