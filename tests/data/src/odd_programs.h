// Declarations for both files of odd_programs.
// SPDX-License-Identifier: MIT
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <ucontext.h>

enum { kPage = 4096, kStack = 4 * kPage };
extern double seconds;         // how long each program runs
extern volatile long handled;  // signals, by count()
extern ucontext_t back;        // where a prepared context ends

double now(void);
void expect(int holds, const char* what);
void check_work(void);
void work_until(double end);
char* pages(size_t bytes);
pthread_t start(void* (*function)(void*), void* argument, size_t stack_bytes);
void handle(int number, void (*handler)(int, siginfo_t*, void*), int flags);
void prepare(ucontext_t* context, void (*function)(void), char* stack, size_t bytes);
void in_threads(void* (*function)(void*), size_t stack_bytes);
void count(int number, siginfo_t* info, void* context);

// Programs whose stacks leave little room, or are others than the thread's.
void other_stack(void);
void small_stack(void);
void little_stack(void);
void little_of_large(void);
void small_coroutine(void);
void preempts(void);
void tiny_threads(void);
