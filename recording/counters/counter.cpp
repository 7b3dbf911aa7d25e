// SPDX-License-Identifier: MIT
#include "recording/counters/counter.h"

#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <limits>
#include <utility>

#include "base/error.h"
#include "recording/bpf/records.h"
#include "stream/proc/own_rights.h"
#include "stream/user_copy.h"

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

void Ring::release(std::uint64_t seen) noexcept {
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

namespace pe::recording {
namespace {

constexpr std::size_t kPageBytes = 4096;
/// The pages that an ordinary user may lock without further limits (perf_event_mlock_kb is 516).
constexpr std::size_t kSmallPages = 128;

/// Returns the largest copy that leaves the ring room for a twentieth of a second.
std::uint32_t stack_bytes_for(std::size_t ring_bytes, const Request& request) {
  if (!copies_stacks(request))
    return 0;
  if (request.engine == Engine::kBpf)
    return unwind::kPassedStackBytes;
  if (request.stack_bytes)
    return *request.stack_bytes;
  constexpr std::uint64_t kPerSecond = 20;
  constexpr std::uint64_t kFewest = 16;
  constexpr std::uint64_t kMost = 128;
  const std::uint64_t rate = request.period ? 0 : request.frequency_hz;
  const std::size_t samples = std::clamp(rate / kPerSecond, kFewest, kMost);
  return static_cast<std::uint32_t>(
      std::min<std::size_t>(ring_bytes / samples / 8 * 8, kMaxStackBytes));
}

/// With stack copies, rings wake us every 10 ms, all CPUs together.  That is often enough to find
/// the rest of a deep stack in the process while it is unchanged.  Without copies, half a ring may
/// fill, which costs a tenth as much as a wake-up for each sample.
std::uint32_t watermark_for(const RingPlan& plan, const Request& request, std::size_t cpus) {
  if (request.wakes_at_once)
    return 1;
  // These rings have no samples.  A sample whose stack needs a mapping wakes us by itself.
  constexpr std::size_t kWakingShare = 8;
  if (request.engine == Engine::kBpf)
    return static_cast<std::uint32_t>(plan.ring_bytes() / kWakingShare);
  const std::size_t half = plan.ring_bytes() / 2;
  constexpr std::uint64_t kWakeUps = 100;
  constexpr std::uint64_t kRestOfSample = 256;
  std::size_t bytes = half;
  if (plan.stack_bytes > 0 && !request.period)
    bytes = std::max<std::uint64_t>(1, request.frequency_hz * cpus / kWakeUps) *
            (plan.stack_bytes + kRestOfSample);
  // A waiting thread's stack does not change, so a read soon after finds the part that its copy
  // lacks.
  constexpr std::uint64_t kSwitches = 64;
  if (plan.stack_bytes > 0 && request.with_switches)
    bytes = kSwitches * (plan.stack_bytes + kRestOfSample);
  return static_cast<std::uint32_t>(
      std::min<std::size_t>(std::min(bytes, half), std::numeric_limits<std::uint32_t>::max()));
}

RingPlan plan_of(std::size_t pages, const Request& request, std::size_t cpus) {
  RingPlan plan{.pages = pages, .stack_bytes = 0, .watermark_bytes = 0};
  plan.stack_bytes = stack_bytes_for(plan.ring_bytes(), request);
  plan.watermark_bytes = watermark_for(plan, request, cpus);
  return plan;
}

}  // namespace

std::size_t RingPlan::ring_bytes() const noexcept { return pages * kPageBytes; }

std::size_t RingPlan::switch_pages() const noexcept { return std::max<std::size_t>(1, pages / 4); }

std::size_t RingPlan::switch_ring_bytes() const noexcept { return switch_pages() * kPageBytes; }

bool copies_stacks(const Request& request) noexcept {
  const bool is_wanted =
      request.call_graph == CallGraph::kAuto || request.call_graph == CallGraph::kDwarf;
  return is_wanted && !request.kernel_only && stream::wanted_user_regs() != 0;
}

RingPlan first_plan(const Request& request, std::size_t cpus, std::uint64_t available) {
  std::size_t pages = kSmallPages;
  bool lacks_memory = false;
  if (request.engine == Engine::kBpf)
    return plan_of(pages, request, cpus);
  if (copies_stacks(request) || request.with_switches) {
    constexpr std::size_t kLargePages = 4096;                             // 16 MiB
    constexpr std::size_t kAllBytes = std::size_t{512} << 20, kPart = 8;  // on all CPUs together
    // Threads that hand work to each other switch 100,000 times a second.
    const std::size_t wanted = request.with_switches ? 2 * kLargePages : kLargePages;
    const auto pages_of = [&](std::size_t all_bytes) {
      const std::size_t each = all_bytes / kPageBytes / std::max<std::size_t>(1, cpus);
      return std::clamp(std::bit_floor(each), kSmallPages, wanted);
    };
    pages = pages_of(std::min(kAllBytes, available / kPart));
    lacks_memory = !request.ring_pages && pages < pages_of(kAllBytes);
  }
  RingPlan plan = plan_of(request.ring_pages.value_or(pages), request, cpus);
  plan.lacks_memory = lacks_memory;
  return plan;
}

std::optional<RingPlan> smaller_plan(const RingPlan& plan, const Request& request,
                                     std::size_t cpus) {
  if (request.ring_pages || plan.pages <= kSmallPages)
    return std::nullopt;
  return plan_of(plan.pages / 2, request, cpus);
}

}  // namespace pe::recording
