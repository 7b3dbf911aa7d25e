// SPDX-License-Identifier: MIT
#include "recording/inprocess/runtime/call_filter.h"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>

#include <boost/test/unit_test.hpp>
#include <cstddef>
#include <vector>

namespace {

using namespace pe::inprocess;

constexpr std::uint32_t kNumber = offsetof(seccomp_data, nr), kArch = offsetof(seccomp_data, arch);

std::vector<sock_filter> allow_list(std::initializer_list<int> numbers, std::uint32_t otherwise) {
  std::vector<sock_filter> code{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kArch),
                                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
                                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
                                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kNumber)};
  for (const int number : numbers) {
    code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(number), 0, 1));
    code.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  }
  code.push_back(BPF_STMT(BPF_RET | BPF_K, otherwise));
  return code;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(call_filter)

BOOST_AUTO_TEST_CASE(a_list_of_allowed_calls_decides_by_number) {
  const auto filter = allow_list({SYS_read, SYS_rt_sigreturn}, SECCOMP_RET_TRAP);
  BOOST_TEST(filter_result(filter, SYS_rt_sigreturn) == SECCOMP_RET_ALLOW);
  BOOST_TEST(filter_result(filter, SYS_mincore) == SECCOMP_RET_TRAP);
  BOOST_TEST(allows(filter, {SYS_read, SYS_rt_sigreturn}));
  BOOST_TEST(!allows(filter, {SYS_read, SYS_mincore}));
}

BOOST_AUTO_TEST_CASE(only_calls_that_go_on_or_fail_are_harmless) {
  for (const std::uint32_t action : {SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_KILL_THREAD,
                                     SECCOMP_RET_TRAP, SECCOMP_RET_TRACE, SECCOMP_RET_USER_NOTIF})
    BOOST_TEST(!is_harmless(allow_list({SYS_read}, action), {SYS_mincore}));
  for (const std::uint32_t action : {SECCOMP_RET_ALLOW, SECCOMP_RET_LOG, SECCOMP_RET_ERRNO | 1U})
    BOOST_TEST(is_harmless(allow_list({SYS_read}, action), {SYS_mincore, SYS_read}));
  BOOST_TEST(!allows(allow_list({}, SECCOMP_RET_ERRNO | 1U), {SYS_mincore}));
}

BOOST_AUTO_TEST_CASE(all_kinds_of_instructions_compute_as_the_kernel_does) {
  const std::vector<sock_filter> code{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kNumber),       // a = number
      BPF_STMT(BPF_MISC | BPF_TAX, 0),                   // x = number
      BPF_STMT(BPF_ALU | BPF_ADD | BPF_X, 0),            // 2 n
      BPF_STMT(BPF_ALU | BPF_MUL | BPF_K, 6),            // 12 n
      BPF_STMT(BPF_ALU | BPF_DIV | BPF_X, 0),            // 12
      BPF_STMT(BPF_ST, 3),                               //
      BPF_STMT(BPF_LDX | BPF_W | BPF_MEM, 3),            // x = 12
      BPF_STMT(BPF_STX, 15),                             //
      BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0),             // a = 64
      BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 1),            // 32
      BPF_STMT(BPF_ALU | BPF_LSH | BPF_K, 2),            // 128
      BPF_STMT(BPF_ALU | BPF_SUB | BPF_X, 0),            // 116
      BPF_STMT(BPF_ALU | BPF_OR | BPF_K, 0x100),         // 0x174
      BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0x1ff),        // 0x174
      BPF_STMT(BPF_ALU | BPF_XOR | BPF_K, 0x74),         // 0x100
      BPF_STMT(BPF_ALU | BPF_NEG, 0),                    // -0x100
      BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, 5, 1, 0),      // taken
      BPF_STMT(BPF_RET | BPF_K, 1),                      //
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_X, 0, 1, 0),      // taken
      BPF_STMT(BPF_RET | BPF_K, 2),                      //
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x80, 0, 1),  // not taken
      BPF_STMT(BPF_RET | BPF_K, 3),                      //
      BPF_JUMP(BPF_JMP | BPF_JA, 1, 0, 0),               //
      BPF_STMT(BPF_RET | BPF_K, 4),                      //
      BPF_STMT(BPF_LD | BPF_W | BPF_MEM, 15),            // a = 12
      BPF_STMT(BPF_RET | BPF_A, 0),
  };
  BOOST_TEST(filter_result(code, 7) == 12U);
}

BOOST_AUTO_TEST_CASE(shifts_by_the_index_use_five_bits_of_it) {
  const std::vector<sock_filter> code{
      BPF_STMT(BPF_LDX | BPF_IMM, 33),         // x = 33
      BPF_STMT(BPF_LD | BPF_IMM, 6),           // a = 6
      BPF_STMT(BPF_ALU | BPF_LSH | BPF_X, 0),  // 12
      BPF_STMT(BPF_ALU | BPF_LSH | BPF_K, 1),  // 24
      BPF_STMT(BPF_ALU | BPF_RSH | BPF_X, 0),  // 12
      BPF_STMT(BPF_RET | BPF_A, 0),
  };
  BOOST_TEST(filter_result(code, 0) == 12U);
}

BOOST_AUTO_TEST_CASE(what_the_kernel_refuses_or_kills_for_is_not_allowed) {
  const std::vector<sock_filter> no_end{BPF_STMT(BPF_LD | BPF_IMM, 1)};
  const std::vector<sock_filter> too_far{BPF_JUMP(BPF_JMP | BPF_JA, 0xffffffff, 0, 0)};
  const std::vector<sock_filter> by_zero{BPF_STMT(BPF_ALU | BPF_DIV | BPF_X, 0),
                                         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  for (const auto& filter : {std::vector<sock_filter>(), no_end, too_far, by_zero})
    BOOST_TEST(!allows(filter, {SYS_read}));
}

BOOST_AUTO_TEST_SUITE_END()
