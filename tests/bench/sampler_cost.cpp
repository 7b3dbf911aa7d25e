// Measures the cost of a sample for a program that samples itself: the handler alone, and together
// with the kernel's delivery of the signal.
//
//     sampler_cost [STACK_BYTES [ROUNDS]]
//
// Writes lines "handler_ns N", "signal_ns N" (an empty handler) and "both_ns N", medians of 11.
// Sampling takes this share of the CPU: the sum of handler and signal, times the rate.
// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/clock.h"
#include "recording/inprocess/listener.h"
#include "recording/inprocess/runtime/timers.h"
#include "recording/signal/core/handler.h"
#include "recording/signal/core/process.h"
#include "recording/signal/settings.h"

namespace {

using namespace pe;

siginfo_t info_of_sample() {
  siginfo_t info{};
  info.si_signo = SIGPROF;
  info.si_code = SI_TIMER;
  info.si_ptr = reinterpret_cast<void*>(inprocess::process.cookie);  // NOLINT: slot 0
  return info;
}

/// Empties the ring, as a reader does.
void empty_ring() {
  inprocess::Thread& thread = inprocess::process.thread(0);
  thread.tail = thread.head;
}

void send() {
  siginfo_t info = info_of_sample();
  ::syscall(SYS_rt_tgsigqueueinfo, ::getpid(), ::gettid(), SIGPROF, &info);
}

template <typename Work>
std::uint64_t median_ns(int rounds, Work work) {
  std::array<std::uint64_t, 11> all{};
  for (std::uint64_t& ns : all) {
    const std::uint64_t start = monotonic_ns();
    for (int i = 0; i < rounds; ++i)
      work();
    ns = (monotonic_ns() - start) / static_cast<unsigned>(rounds);
  }
  std::ranges::sort(all);
  return all[all.size() / 2];
}

void do_nothing(int /*signal*/, siginfo_t* /*info*/, void* /*context*/) {}

/// Measures with as much stack above this function as a sample copies.
[[gnu::noinline]] void measure(std::size_t stack_bytes, int rounds) {
  auto* room = static_cast<volatile char*>(__builtin_alloca(stack_bytes));
  room[0] = 1;
  struct sigaction action = {};
  ::sigaction(SIGPROF, nullptr, &action);
  siginfo_t info = info_of_sample();
  ucontext_t context;
  ::getcontext(&context);
  context.uc_mcontext.gregs[REG_RSP] = static_cast<greg_t>(
      reinterpret_cast<std::uint64_t>(__builtin_frame_address(0)) - stack_bytes);
  fmt::print("handler_ns {}\n", median_ns(rounds, [&] {
               action.sa_sigaction(SIGPROF, &info, &context);
               empty_ring();
             }));
  fmt::print("both_ns {}\n", median_ns(rounds, [] {
               send();
               empty_ring();
             }));
  struct sigaction empty = action;
  empty.sa_sigaction = do_nothing;
  ::sigaction(SIGPROF, &empty, nullptr);
  fmt::print("signal_ns {}\n", median_ns(rounds, send));
  fmt::print("samples {}\ncut {}\n", inprocess::process.thread(0).samples,
             inprocess::process.thread(0).cut_samples);
}

}  // namespace

int main(int argc, char** argv) {
  const auto stack_bytes = static_cast<std::size_t>(argc > 1 ? std::atol(argv[1]) : 2048);
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 20000;
  const inprocess::Listener listener("sampler-cost");
  // The slowest possible timer, on the wall clock: its own signals must not come in between.
  const std::string settings = fmt::format("{}=socket={},hz=1,clock=wall",
                                           inprocess::kSettingsVariable, listener.socket_name());
  const std::array<const char*, 2> environment{settings.c_str(), nullptr};
  inprocess::set_real_sigaction(::sigaction, ::sigaction);
  inprocess::begin_process(environment.data());
  if (!inprocess::process.samples())
    return 1;
  measure(stack_bytes, rounds);
  return 0;
}
