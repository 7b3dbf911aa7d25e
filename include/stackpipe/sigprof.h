/* A program profiles itself: samples of its threads go to a file descriptor, as a sample stream
 * (pe-stream(5)) for pe-symbolize, stackfold and flamesvg.  Link with -lstackpipe-sigprof;
 * sp_sigprof(3) tells all.
 *
 *     sp_sigprof_options options = SP_SIGPROF_OPTIONS;
 *     options.hz = 199;
 *     int error = sp_sigprof_start(&options, fd);
 *     if (error != SP_SIGPROF_OK)
 *       fprintf(stderr, "not profiled: %s\n", sp_sigprof_error(error));
 *     ...
 *     sp_sigprof_stop(NULL);
 *
 * Linux on x86-64, glibc.  Any thread may call any function here, no signal handler may.
 * SPDX-License-Identifier: MIT
 */
#ifndef STACKPIPE_SIGPROF_H
#define STACKPIPE_SIGPROF_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__ /* the library hides its other names */
#pragma GCC visibility push(default)
#endif

/* What the time between two samples is of. */
enum sp_sigprof_clock {
  SP_SIGPROF_CPU = 0, /* the thread's own CPU time: nothing of what it waits */
  SP_SIGPROF_WALL = 1 /* all time: waits are interrupted by the signal (EINTR, signal(7)) */
};

enum sp_sigprof_threads {
  SP_SIGPROF_ALL_THREADS = 0, /* those that run, and later ones soon after they have begun */
  SP_SIGPROF_THIS_THREAD = 1  /* the one that starts, and those that add themselves */
};

/* Fields that are 0 have the value that is written first. */
typedef struct sp_sigprof_options {
  size_t size;          /* sizeof(sp_sigprof_options): SP_SIGPROF_OPTIONS sets it */
  uint32_t hz;          /* 99; samples a second of each thread's time, 1 to 1000 */
  uint32_t clock;       /* SP_SIGPROF_CPU */
  uint32_t threads;     /* SP_SIGPROF_ALL_THREADS */
  uint32_t stack_bytes; /* 32768; most that is copied of a stack, 256 to 64512 */
  uint32_t ring_bytes;  /* 524288; memory for samples of each thread, 65536 to 16777216 */
  uint32_t stop_ms;     /* 2000; how long stop waits for a reader that is slow */
} sp_sigprof_options;

/* Versions of clang-format differ in initializers in macros. */
/* clang-format off */
#define SP_SIGPROF_OPTIONS {sizeof(sp_sigprof_options), 0, 0, 0, 0, 0, 0}
/* clang-format on */

typedef struct sp_sigprof_counts {
  size_t size;               /* sizeof(sp_sigprof_counts): SP_SIGPROF_COUNTS sets it */
  uint64_t samples;          /* in the stream */
  uint64_t sampled_ns;       /* the time that they stand for */
  uint64_t lost_samples;     /* a ring was full, for the reader was slow; or not written at all */
  uint64_t lost_ns;          /* the time that those would have stood for */
  uint64_t cut_samples;      /* whose stack is deeper than what was copied */
  uint64_t threads;          /* that were sampled */
  uint64_t threads_refused;  /* the kernel gave no timer (ulimit -i) or no memory */
  uint64_t threads_blocking; /* that blocked SIGPROF, so that there is no sample of them */
  uint64_t cpu_ns;           /* CPU time of the process meanwhile, without the library's thread */
  uint64_t own_cpu_ns;       /* CPU time of the library's thread */
  uint64_t bytes;            /* of the stream */
} sp_sigprof_counts;

/* clang-format off */
#define SP_SIGPROF_COUNTS {sizeof(sp_sigprof_counts), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
/* clang-format on */

/* What the functions return. */
enum sp_sigprof_result {
  SP_SIGPROF_OK = 0,
  SP_SIGPROF_BAD_OPTION = 1,   /* out of its range, or not known to this version */
  SP_SIGPROF_BAD_FD = 2,       /* not open for writing, or none is left: errno says why */
  SP_SIGPROF_RUNNING = 3,      /* started already */
  SP_SIGPROF_NOT_RUNNING = 4,  /* not started; or started by the process that forked this one */
  SP_SIGPROF_SIGNAL_TAKEN = 5, /* the program has a handler of its own for SIGPROF */
  SP_SIGPROF_NO_TIMER = 6,     /* errno says why */
  SP_SIGPROF_NO_MEMORY = 7,    /* errno says why */
  SP_SIGPROF_NO_THREAD = 8,    /* the library's own could not begin: errno says why */
  SP_SIGPROF_WRITE_FAILED = 9, /* the stream ends early: errno says why; EPIPE: nobody reads */
  SP_SIGPROF_READER_SLOW = 10, /* the stream ends early: stop_ms were not enough for its reader */
  SP_SIGPROF_NO_PROC = 11      /* /proc/self/maps cannot be read: errno says why */
};

/* Begins to sample, and to write to a duplicate of `fd`, which the caller may close.  `options` may
 * be NULL.  From then on a thread of the library writes; the program never waits for the reader. */
int sp_sigprof_start(const sp_sigprof_options* options, int fd);

/* Samples the calling thread from now on, if it is not sampled yet: for a thread that is one of
 * those chosen, or too short-lived to be found. */
int sp_sigprof_add_this_thread(void);

/* Ends what was started, and writes what is left.  `counts` may be NULL; it is filled also if the
 * result is SP_SIGPROF_SIGNAL_TAKEN, SP_SIGPROF_WRITE_FAILED or SP_SIGPROF_READER_SLOW. */
int sp_sigprof_stop(sp_sigprof_counts* counts);

/* A result in words, in English; never NULL. */
const char* sp_sigprof_error(int result);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
