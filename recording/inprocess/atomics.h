// Access to numbers in memory that two processes share.  The layout declares plain fields; every
// access is atomic.
// SPDX-License-Identifier: MIT
#pragma once

namespace pe::inprocess {

/// Reads a number that another thread or process may write or read at any time.
template <typename T>
[[nodiscard]] T load_relaxed(const T& from) noexcept {
  return __atomic_load_n(&from, __ATOMIC_RELAXED);
}
template <typename T>
void store_relaxed(T& to, T value) noexcept {
  __atomic_store_n(&to, value, __ATOMIC_RELAXED);
}

/// Reads a number that publish() has stored.  Later reads see everything that was written before
/// it.
template <typename T>
[[nodiscard]] T load_published(const T& from) noexcept {
  return __atomic_load_n(&from, __ATOMIC_ACQUIRE);
}
/// Stores a number, after everything that was written before.
template <typename T>
void publish(T& to, T value) noexcept {
  __atomic_store_n(&to, value, __ATOMIC_RELEASE);
}

/// Adds to a count that several threads add to.
template <typename T>
void count_up(T& count, T by = 1) noexcept {
  __atomic_fetch_add(&count, by, __ATOMIC_RELAXED);
}
/// Adds to a count that only one thread changes, and others read.
template <typename T>
void count_own(T& count, T by) noexcept {
  store_relaxed(count, static_cast<T>(load_relaxed(count) + by));
}

/// Changes `value` from `from` to `to`; false, and no change, if it is not `from`.
template <typename T>
bool change(T& value, T from, T to) noexcept {
  return __atomic_compare_exchange_n(&value, &from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

}  // namespace pe::inprocess
