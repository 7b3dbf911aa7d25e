// SPDX-License-Identifier: MIT
#include "recording/counters/counter.h"

#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <utility>

#include "base/error.h"

namespace pe::stream {

Fd open_counter(const perf_event_attr& attr, const CounterPlace& place, int& error) {
  const unsigned long flags = PERF_FLAG_FD_CLOEXEC | (place.is_cgroup ? PERF_FLAG_PID_CGROUP : 0);
  perf_event_attr copy = attr;  // the kernel writes its own attr size back on E2BIG
  const long fd = ::syscall(SYS_perf_event_open, &copy, place.pid, place.cpu, -1, flags);
  error = fd < 0 ? errno : 0;
  return Fd(static_cast<int>(fd));
}

bool has_build_ids() {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_DUMMY;
  attr.exclude_kernel = 1;
  attr.exclude_hv = 1;
  attr.mmap = 1;
  attr.mmap2 = 1;
  attr.build_id = 1;
  int error = 0;
  return static_cast<bool>(open_counter(attr, {.pid = 0}, error));
}

std::optional<std::uint64_t> id_of(const Fd& counter) {
  std::uint64_t id = 0;
  if (::ioctl(counter.get(), PERF_EVENT_IOC_ID, &id) != 0)
    return std::nullopt;
  return id;
}

namespace {

/// The count, the times and the losses of a counter: perf_event_open(2), "Reading
/// results".
std::optional<std::uint64_t> read_count(const Fd& counter, std::size_t number) {
  std::array<std::uint64_t, 3> counts{};
  const ssize_t bytes = ::read(counter.get(), counts.data(), sizeof counts);
  return bytes >= static_cast<ssize_t>((number + 1) * sizeof counts[0])
             ? std::optional(counts.at(number))
             : std::nullopt;
}

}  // namespace

std::optional<std::uint64_t> enabled_ns_of(const Fd& counter) { return read_count(counter, 1); }

std::optional<std::uint64_t> lost_of(const Fd& counter) { return read_count(counter, 2); }

std::optional<Ring> Ring::map(const Fd& counter, std::size_t pages, int& error) {
  const auto page_bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t bytes = (pages + 1) * page_bytes;
  void* map = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, counter.get(), 0);
  error = map == MAP_FAILED ? errno : 0;
  if (map == MAP_FAILED)
    return std::nullopt;
  return Ring(map, bytes, page_bytes, false);
}

Ring Ring::allocate(std::size_t data_bytes) {
  const auto page_bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  for (;; data_bytes /= 2) {
    const std::size_t bytes = page_bytes + data_bytes;
    void* map = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map != MAP_FAILED) {
      ::madvise(map, bytes, MADV_NOHUGEPAGE);  // a huge page would stay in use as a whole
      return Ring(map, bytes, page_bytes, true);
    }
    constexpr std::size_t kLeast = 1 << 20;
    if (data_bytes <= kLeast)
      throw_errno("a ring for samples", errno);
  }
}

Ring::Ring(Ring&& other) noexcept
    : map_(std::exchange(other.map_, nullptr)),
      map_bytes_(other.map_bytes_),
      data_offset_(other.data_offset_),
      is_own_(other.is_own_),
      seen_(other.seen_),
      wrapped_(std::move(other.wrapped_)) {}

Ring& Ring::operator=(Ring&& other) noexcept {
  std::swap(map_, other.map_);
  std::swap(map_bytes_, other.map_bytes_);
  std::swap(data_offset_, other.data_offset_);
  std::swap(is_own_, other.is_own_);
  std::swap(seen_, other.seen_);
  std::swap(wrapped_, other.wrapped_);
  return *this;
}

Ring::~Ring() {
  if (map_ != nullptr)
    ::munmap(map_, map_bytes_);
}

std::uint64_t Ring::read_head() const noexcept {
  auto* page = static_cast<perf_event_mmap_page*>(map_);
  // After this read, all data that the kernel wrote before it moved data_head is visible.
  return std::atomic_ref(page->data_head).load(std::memory_order_acquire);
}

std::uint64_t Ring::tail() const noexcept {
  return static_cast<perf_event_mmap_page*>(map_)->data_tail;
}

void Ring::give_back(std::uint64_t seen) noexcept {
  if (is_own_)
    return free_until(seen);
  auto* page = static_cast<perf_event_mmap_page*>(map_);
  if (seen > page->data_tail)
    std::atomic_ref(page->data_tail).store(seen, std::memory_order_release);
}

/// Frees whole pages before the writer may use them again; a call costs as much as a few pages.
void Ring::free_until(std::uint64_t position) noexcept {
  constexpr std::size_t kShare = 64;
  const std::size_t ring_bytes = map_bytes_ - data_offset_;
  const std::uint64_t from = tail(), to = position & ~std::uint64_t{data_offset_ - 1};
  if (to <= from || to - from < ring_bytes / kShare)
    return;
  std::byte* data = static_cast<std::byte*>(map_) + data_offset_;
  const std::size_t offset = from & (ring_bytes - 1);
  const std::size_t first = std::min<std::size_t>(to - from, ring_bytes - offset);
  ::madvise(data + offset, first, MADV_DONTNEED);
  ::madvise(data, to - from - first, MADV_DONTNEED);
  auto* page = static_cast<perf_event_mmap_page*>(map_);
  std::atomic_ref(page->data_tail).store(to, std::memory_order_release);
}

bool Ring::is_roomy() const noexcept {
  constexpr std::size_t kShare = 4;
  return seen_ - tail() < (map_bytes_ - data_offset_) / kShare;
}

/// Returns the record at `tail`; empty if the kernel cannot have written it.
Bytes Ring::record_at(std::uint64_t tail, std::uint64_t head) {
  const auto* data = static_cast<const std::byte*>(map_) + data_offset_;
  const std::size_t ring_bytes = map_bytes_ - data_offset_;
  const std::size_t offset = tail & (ring_bytes - 1);
  perf_event_header header;  // records are multiples of 8, so a header never wraps
  std::memcpy(&header, data + offset, sizeof header);
  if (header.size < sizeof header || header.size > head - tail)
    return {};
  if (offset + header.size <= ring_bytes)
    return {data + offset, header.size};
  const std::size_t first = ring_bytes - offset;
  wrapped_.assign(data + offset, data + ring_bytes);
  wrapped_.insert(wrapped_.end(), data, data + (header.size - first));
  return wrapped_;
}

bool share_ring(const Fd& counter, const Fd& owner, int& error) {
  const bool shared = ::ioctl(counter.get(), PERF_EVENT_IOC_SET_OUTPUT, owner.get()) == 0;
  error = shared ? 0 : errno;
  return shared;
}

bool set_filter(const Fd& counter, const std::string& filter, int& error) {
  const bool is_set = ::ioctl(counter.get(), PERF_EVENT_IOC_SET_FILTER, filter.c_str()) == 0;
  error = is_set ? 0 : errno;
  return is_set;
}

bool enable(const Fd& counter) { return ::ioctl(counter.get(), PERF_EVENT_IOC_ENABLE, 0) == 0; }
bool disable(const Fd& counter) { return ::ioctl(counter.get(), PERF_EVENT_IOC_DISABLE, 0) == 0; }

}  // namespace pe::stream
