/* A program profiles itself: the library writes samples of its threads to a file descriptor, as a
 * sample stream (pe-stream(5)) for pe-symbolize, stackfold and flamesvg.  Link with
 * -lstackpipe-sigprof.  sp_sigprof(3) is the complete manual.
 *
 *     sp_sigprof_options options = SP_SIGPROF_OPTIONS;
 *     options.hz = 199;
 *     int error = sp_sigprof_start(&options, fd);
 *     if (error != SP_SIGPROF_OK)
 *       fprintf(stderr, "not profiled: %s\n", sp_sigprof_error(error));
 *     ...
 *     sp_sigprof_stop(NULL);
 *
 * For Linux on x86-64 with glibc.  Any thread may call these functions; signal handlers must not.
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

/* The kind of time between two samples. */
enum sp_sigprof_clock {
  SP_SIGPROF_CPU = 0, /* the thread's own CPU time, without its waits */
  SP_SIGPROF_WALL = 1 /* all time; the signal interrupts waits (EINTR, signal(7)) */
};

enum sp_sigprof_threads {
  SP_SIGPROF_ALL_THREADS = 0, /* running threads, and later ones soon after their start */
  SP_SIGPROF_THIS_THREAD = 1  /* the thread that calls start, and those that add themselves */
};

/* A field that is 0 has its default, which its comment names first.  Later versions append fields
 * to both structures, and change nothing else of them: `size` tells the library which ones exist.
 */
typedef struct sp_sigprof_options {
  size_t size;          /* sizeof(sp_sigprof_options): SP_SIGPROF_OPTIONS sets it */
  uint32_t hz;          /* 99; samples per second of each thread's time, 1 to 1000 */
  uint32_t clock;       /* SP_SIGPROF_CPU */
  uint32_t threads;     /* SP_SIGPROF_ALL_THREADS */
  uint32_t stack_bytes; /* 32768; maximum copied of a stack, 256 to 64512 */
  uint32_t ring_bytes;  /* 524288; memory for samples of each thread, 65536 to 16777216 */
  uint32_t stop_ms;     /* 2000; how long stop waits for a slow reader */
} sp_sigprof_options;

/* Versions of clang-format format initializers in macros differently. */
/* clang-format off */
#define SP_SIGPROF_OPTIONS {sizeof(sp_sigprof_options), 0, 0, 0, 0, 0, 0}
/* clang-format on */

typedef struct sp_sigprof_counts {
  size_t size;               /* sizeof(sp_sigprof_counts): SP_SIGPROF_COUNTS sets it */
  uint64_t samples;          /* samples in the stream */
  uint64_t sampled_ns;       /* the time that they represent */
  uint64_t lost_samples;     /* not in the stream: a slow reader filled a ring, or writing failed */
  uint64_t lost_ns;          /* the time that lost samples would represent */
  uint64_t cut_samples;      /* samples whose stack is deeper than its copy, or not copied */
  uint64_t threads;          /* threads that were sampled */
  uint64_t threads_refused;  /* maximum at one time: no timer (ulimit -i) or no memory */
  uint64_t threads_blocking; /* threads without samples, because they blocked SIGPROF */
  uint64_t cpu_ns;           /* CPU time of the process during the run, without own_cpu_ns */
  uint64_t own_cpu_ns;       /* CPU time of the library's thread */
  uint64_t bytes;            /* length of the stream */
} sp_sigprof_counts;

/* clang-format off */
#define SP_SIGPROF_COUNTS {sizeof(sp_sigprof_counts), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
/* clang-format on */

/* The results of the functions. */
enum sp_sigprof_result {
  SP_SIGPROF_OK = 0,
  SP_SIGPROF_BAD_OPTION = 1,   /* out of its range, or unknown to this version */
  SP_SIGPROF_BAD_FD = 2,       /* not open for writing, or no descriptor is left: see errno */
  SP_SIGPROF_RUNNING = 3,      /* already started */
  SP_SIGPROF_NOT_RUNNING = 4,  /* not started in this process; fork(2) does not inherit it */
  SP_SIGPROF_SIGNAL_TAKEN = 5, /* the program has its own handler for SIGPROF */
  SP_SIGPROF_NO_TIMER = 6,     /* the kernel refused a timer: see errno */
  SP_SIGPROF_NO_MEMORY = 7,    /* not enough memory: see errno */
  SP_SIGPROF_NO_THREAD = 8,    /* the library's thread could not start: see errno */
  SP_SIGPROF_WRITE_FAILED = 9, /* the stream ends early: see errno; EPIPE: no reader */
  SP_SIGPROF_READER_SLOW = 10, /* the stream ends early: its reader needed more than stop_ms */
  SP_SIGPROF_NO_PROC = 11      /* /proc/self/maps is unreadable: see errno */
};

/* Starts sampling.  A thread of the library writes the stream to a duplicate of `fd`, so the caller
 * may close `fd`.  `options` may be NULL.  The program does not wait for the reader, except in
 * sp_sigprof_stop(). */
int sp_sigprof_start(const sp_sigprof_options* options, int fd);

/* Starts to sample the calling thread, if it is not sampled yet.  Needed for threads that
 * SP_SIGPROF_THIS_THREAD leaves out, and for those too short-lived to be found. */
int sp_sigprof_add_this_thread(void);

/* Stops sampling, and writes the remaining samples.  `counts` may be NULL.  The function also fills
 * it for SP_SIGPROF_SIGNAL_TAKEN, SP_SIGPROF_WRITE_FAILED and SP_SIGPROF_READER_SLOW. */
int sp_sigprof_stop(sp_sigprof_counts* counts);

/* Returns the English text of a result; never NULL. */
const char* sp_sigprof_error(int result);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
