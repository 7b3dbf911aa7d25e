// Runs a filter of system calls (seccomp(2)) as the kernel does, and returns its action for a call.
//
// A program that installs a filter still has our library in it.  The library must not make a call
// that ends the program.  Of the kernel's data a filter sees the number and the architecture;
// arguments and the instruction's address are 0 here.
// SPDX-License-Identifier: MIT
#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <initializer_list>
#include <span>

namespace pe::inprocess {

/// Returns the filter's result for a call: an action (SECCOMP_RET_ALLOW) and its data.  That of an
/// invalid filter, which the kernel refuses, is SECCOMP_RET_KILL_PROCESS.
std::uint32_t filter_result(std::span<const sock_filter> filter, int number) noexcept;

/// Whether each of these calls goes on as if there were no filter.
bool allows(std::span<const sock_filter> filter, std::initializer_list<int> numbers) noexcept;
/// Whether each of these calls goes on, or fails.  Otherwise it would end the program, or another
/// process would notice it.
bool is_harmless(std::span<const sock_filter> filter, std::initializer_list<int> numbers) noexcept;

}  // namespace pe::inprocess
