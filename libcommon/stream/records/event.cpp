// SPDX-License-Identifier: MIT
#include "stream/records/event.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <string_view>
#include <utility>

#include "stream/records/tracepoint.h"

namespace pe::stream {
namespace {

struct NamedEvent {
  std::string_view name;
  std::uint32_t type;
  std::uint64_t config;
};

// The names of perf list.  If one event has two names, name_of() returns the first.
constexpr std::array kNamedEvents{
    NamedEvent{"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    NamedEvent{"cpu-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    NamedEvent{"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
    NamedEvent{"cache-references", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES},
    NamedEvent{"cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
    NamedEvent{"branches", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
    NamedEvent{"branch-instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
    NamedEvent{"branch-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES},
    NamedEvent{"bus-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BUS_CYCLES},
    NamedEvent{"stalled-cycles-frontend", PERF_TYPE_HARDWARE,
               PERF_COUNT_HW_STALLED_CYCLES_FRONTEND},
    NamedEvent{"stalled-cycles-backend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND},
    NamedEvent{"ref-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_REF_CPU_CYCLES},
    NamedEvent{"cpu-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK},
    NamedEvent{"task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
    NamedEvent{"page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
    NamedEvent{"faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
    NamedEvent{"context-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES},
    NamedEvent{"cs", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES},
    NamedEvent{"cpu-migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS},
    NamedEvent{"migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS},
    NamedEvent{"minor-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN},
    NamedEvent{"major-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ},
    NamedEvent{"alignment-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_ALIGNMENT_FAULTS},
    NamedEvent{"emulation-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_EMULATION_FAULTS},
    NamedEvent{"dummy", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY},
};

/// A part of the name of a cache's event, such as "L1-dcache-load-misses", and its part of the
/// config (perf_event_open(2), PERF_TYPE_HW_CACHE).
struct CachePart {
  std::string_view name;
  std::uint64_t config;
};

constexpr std::array kCaches{CachePart{"L1-dcache", PERF_COUNT_HW_CACHE_L1D},
                             CachePart{"L1-icache", PERF_COUNT_HW_CACHE_L1I},
                             CachePart{"LLC", PERF_COUNT_HW_CACHE_LL},
                             CachePart{"dTLB", PERF_COUNT_HW_CACHE_DTLB},
                             CachePart{"iTLB", PERF_COUNT_HW_CACHE_ITLB},
                             CachePart{"branch", PERF_COUNT_HW_CACHE_BPU},
                             CachePart{"node", PERF_COUNT_HW_CACHE_NODE}};

constexpr std::uint64_t cache_access(std::uint64_t op, std::uint64_t result) {
  return op << 8U | result << 16U;
}

constexpr std::array kCacheAccesses{
    CachePart{"loads",
              cache_access(PERF_COUNT_HW_CACHE_OP_READ, PERF_COUNT_HW_CACHE_RESULT_ACCESS)},
    CachePart{"load-misses",
              cache_access(PERF_COUNT_HW_CACHE_OP_READ, PERF_COUNT_HW_CACHE_RESULT_MISS)},
    CachePart{"stores",
              cache_access(PERF_COUNT_HW_CACHE_OP_WRITE, PERF_COUNT_HW_CACHE_RESULT_ACCESS)},
    CachePart{"store-misses",
              cache_access(PERF_COUNT_HW_CACHE_OP_WRITE, PERF_COUNT_HW_CACHE_RESULT_MISS)},
    CachePart{"prefetches",
              cache_access(PERF_COUNT_HW_CACHE_OP_PREFETCH, PERF_COUNT_HW_CACHE_RESULT_ACCESS)},
    CachePart{"prefetch-misses",
              cache_access(PERF_COUNT_HW_CACHE_OP_PREFETCH, PERF_COUNT_HW_CACHE_RESULT_MISS)}};

/// Calls `use` with the name and the config of each event of a cache.
template <typename Use>
void for_each_cache_event(const Use& use) {
  for (const CachePart& cache : kCaches)
    for (const CachePart& access : kCacheAccesses)
      use(fmt::format("{}-{}", cache.name, access.name), cache.config | access.config);
}

bool set_cache_event(perf_event_attr& attr, const std::string& name) {
  bool is_found = false;
  for_each_cache_event([&](const std::string& known, std::uint64_t config) {
    if (known != name)
      return;
    is_found = true;
    attr.type = PERF_TYPE_HW_CACHE;
    attr.config = config;
  });
  return is_found;
}

/// Returns the position of the event's id in a record, in units of u64.  It counts from the start
/// of a sample's body, and back from the end of any other record.  Returns nullopt if there is no
/// id.
std::optional<std::size_t> id_position(const perf_event_attr& attr, bool is_sample) {
  const std::uint64_t type = attr.sample_type;
  if ((type & PERF_SAMPLE_IDENTIFIER) != 0)
    return is_sample ? 0 : 1;
  if ((type & PERF_SAMPLE_ID) == 0)
    return std::nullopt;
  const std::uint64_t between =
      is_sample ? PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR
                : PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU;
  const auto fields = static_cast<std::size_t>(std::popcount(type & between));
  return is_sample ? fields : fields + 1;
}

}  // namespace

std::optional<perf_event_attr> take_attr(ByteReader& reader) {
  // `size` is the second u32; 0 means the first version (perf_event_open(2)).
  ByteReader peek = reader;
  const bool has_type = peek.take<std::uint32_t>().has_value();
  const auto stated = peek.take<std::uint32_t>();
  if (!has_type || !stated)
    return std::nullopt;
  const std::uint32_t size = *stated == 0 ? PERF_ATTR_SIZE_VER0 : *stated;
  const auto bytes = reader.take_bytes(size);
  if (!bytes || size < PERF_ATTR_SIZE_VER0)
    return std::nullopt;
  perf_event_attr attr{};
  std::memcpy(&attr, bytes->data(), std::min<std::size_t>(size, sizeof attr));
  return attr;
}

std::string name_of(const perf_event_attr& attr) {
  const auto* named =
      std::find_if(kNamedEvents.begin(), kNamedEvents.end(), [&](const NamedEvent& event) {
        return event.type == attr.type && event.config == attr.config;
      });
  if (named != kNamedEvents.end())
    return std::string(named->name);
  return fmt::format("type {} config {:#x}", attr.type, attr.config);
}

bool set_event(perf_event_attr& attr, const std::string& name) {
  const auto* named = std::find_if(kNamedEvents.begin(), kNamedEvents.end(),
                                   [&](const NamedEvent& event) { return event.name == name; });
  if (named == kNamedEvents.end())
    return set_cache_event(attr, name);
  attr.type = named->type;
  attr.config = named->config;
  return true;
}

std::vector<std::string> known_event_names() {
  std::vector<std::string> names(kNamedEvents.size());
  std::transform(kNamedEvents.begin(), kNamedEvents.end(), names.begin(),
                 [](const NamedEvent& event) { return std::string(event.name); });
  for_each_cache_event(
      [&names](const std::string& name, std::uint64_t /*config*/) { names.push_back(name); });
  return names;
}

namespace {

/// May the attrs be those of one event in two recordings?  The place of a probe's name in memory
/// differs.
bool are_alike(const perf_event_attr& a, const perf_event_attr& b) noexcept {
  return a.type == b.type && a.config == b.config && a.sample_type == b.sample_type &&
         a.sample_regs_user == b.sample_regs_user && a.sample_id_all == b.sample_id_all;
}

}  // namespace

bool EventTable::add(const Record& attr_record) {
  ByteReader reader(attr_record.body());
  const auto attr = take_attr(reader);
  if (!attr)
    return false;
  const bool has_more_ids = (attr_record.misc & kMiscMoreIds) != 0 && !events_.empty();
  if (!has_more_ids) {
    last_ = again_ ? (*again_)++ : events_.size();
    if (last_ >= events_.size() || !are_alike(events_[last_].attr, *attr)) {
      last_ = events_.size();
      events_.push_back({.attr = *attr, .ids = {}, .name = name_of(*attr), .unit = {}});
    }
  }
  Event& event = events_[last_];
  const U64View ids(reader.left());
  event.ids.reserve(event.ids.size() + ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    event.ids.push_back(ids[i]);
    index_by_id_.emplace(ids[i], last_);
  }
  return true;
}

bool EventTable::update(const Record& update_record) {
  ByteReader reader(update_record.body());
  const auto type = reader.take<std::uint64_t>();
  const auto id = reader.take<std::uint64_t>();
  if (!type || !id)
    return false;
  const auto found = index_by_id_.find(*id);
  if (found == index_by_id_.end())
    return false;
  if (*type != kUpdateUnit && *type != kUpdateName)
    return true;
  const auto text = reader.take_string();
  if (!text)
    return false;
  Event& event = events_[found->second];
  (*type == kUpdateUnit ? event.unit : event.name) = *text;
  return true;
}

void EventTable::weigh_by(std::string field) { weight_ = std::move(field); }

bool EventTable::describe(const Record& tracing_data) {
  return for_each_described_tracepoint(tracing_data, [this](const DescribedTracepoint& known) {
    for (Event& event : events_) {
      if (!is_tracepoint(event.attr) || event.attr.config != known.id || !event.fields.empty())
        continue;
      if (event.name == name_of(event.attr))
        event.name = fmt::format("{}:{}", known.group, known.name);
      event.fields = parse_tracepoint_fields(known.format);
      const auto field = std::ranges::find(event.fields, weight_, &TracepointField::name);
      if (field == event.fields.end() || !field->is_number())
        continue;
      event.weight = *field;
      event.unit = unit_of_field(weight_);
    }
  });
}

const Event* EventTable::find(const Record& record) const {
  if (events_.empty())
    return nullptr;
  const Event& first = events_.front();
  if (events_.size() == 1)
    return &first;
  // perf gives all events of one stream the same position for the id.
  const auto position = id_position(first.attr, record.is_sample());
  if (!position)
    return &first;
  const U64View fields(record.body());
  if (record.is_sample() ? *position >= fields.size() : *position > fields.size())
    return nullptr;
  const std::uint64_t id = fields[record.is_sample() ? *position : fields.size() - *position];
  const auto found = index_by_id_.find(id);
  if (found != index_by_id_.end())
    return &events_[found->second];
  return id == 0 ? &first : nullptr;  // records that a recorder synthesized have no id
}

std::optional<SpanEvent> span_event(std::string_view event_name) noexcept {
  if (event_name.starts_with(kSpanEntry))
    return SpanEvent{event_name.substr(kSpanEntry.size()), false};
  if (event_name.starts_with(kSpanReturn))
    return SpanEvent{event_name.substr(kSpanReturn.size()), true};
  return std::nullopt;
}

std::string_view name_without_path(std::string_view function) noexcept {
  // Two colons separate the parts of a C++ name.
  for (std::size_t i = 0; i < function.size(); ++i) {
    if (function[i] != ':')
      continue;
    if (i + 1 == function.size() || function[i + 1] != ':')
      return function.substr(i + 1);
    ++i;
  }
  return function;
}

}  // namespace pe::stream
