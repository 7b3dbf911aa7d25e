// SPDX-License-Identifier: MIT
#include "recording/bpf/bpf_object.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <unwinder.skel.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/io/input.h"
#include "base/parse_number.h"
#include "recording/bpf/links.h"
#include "recording/bpf/mapped_memory.h"
#include "recording/bpf/numbered_tables.h"
#include "recording/bpf/settings.h"
#include "recording/bpf/target_filter.h"
#include "recording/refused.h"

namespace pe::unwind {
namespace {

struct SkeletonDeleter {
  void operator()(unwinder* skeleton) const { unwinder__destroy(skeleton); }
};
using Skeleton = std::unique_ptr<unwinder, SkeletonDeleter>;

struct RingDeleter {
  void operator()(ring_buffer* ring) const { ring_buffer__free(ring); }
};

/// libbpf does not always report that a lack of open files has caused the failure.
bool is_short_of_files() {
  const Fd another(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  constexpr int kSkeletonsFiles = 40;
  return !another || another.get() + kSkeletonsFiles > ::sysconf(_SC_OPEN_MAX);
}

Skeleton open(std::string& log) {
  if (struct stat status{}; ::stat("/sys/kernel/btf/vmlinux", &status) != 0)
    throw recording::Refused("eBPF: the kernel has no BTF (/sys/kernel/btf/vmlinux)");
  bpf_object_open_opts options{};
  options.sz = sizeof options;
  options.kernel_log_buf = log.data();
  options.kernel_log_size = log.size();
  Skeleton skeleton(unwinder__open_opts(&options));
  if (!skeleton)
    throw_errno("eBPF: programs", errno);
  return skeleton;
}

StackOfKernel view_stack(std::span<const std::uint64_t> words) {
  if (words.empty())
    return {};
  const std::uint64_t header = words.front();
  const std::size_t count = header & 0xffff;
  const auto stop = static_cast<std::uint32_t>(header >> kHeaderStopShift & kHeaderStopMask);
  const std::size_t in_script = header >> kHeaderScriptShift & 0xffff;
  if (count >= words.size() || in_script > count || stop >= kStackStopCount)
    return {};
  const bool is_cut = (header & kHeaderScriptCut) != 0;
  return {words.subspan(1, count - in_script), is_cut ? kStopTooDeep : static_cast<StackStop>(stop),
          (header & kHeaderKernel) != 0,
          words.subspan(1 + count - in_script, in_script - std::min<std::size_t>(in_script, 1)),
          (header & kHeaderScriptCut) != 0};
}

class LoadedObject final : public BpfObject {
 public:
  explicit LoadedObject(Skeleton skeleton);

  std::span<std::uint32_t> chunk(std::uint32_t number) override;
  std::span<RuleEntry> rules() override;
  bool set_process(std::uint32_t tgid, const ProcessMappings& mappings) override;
  void forget_process(std::uint32_t tgid) override;

  void attach_to_counter(int counter, std::uint64_t cookie, CounterKind kind) override;
  void set_weight(std::uint64_t cookie, const HitWeight& weight) override;
  void pause(bool is_paused) override { skeleton_->bss->is_paused = is_paused ? 1 : 0; }
  std::uint64_t attach_to_switches() override;
  void detach() override { attached_.clear(), counter_links_.clear(); }
  bool add_target(std::uint32_t tgid, TargetStart start) override;
  bool set_script(std::uint32_t tgid, const ProcessScript& script) override;
  void forget_script(std::uint32_t tgid) override;
  bool add_script_file(const ScriptFileKey& key, const ScriptFile& file) override;

  [[nodiscard]] int ring_fd() const override { return ring_buffer__epoll_fd(ring_.get()); }
  std::size_t read_samples(const std::function<void(const Sample&)>& on_sample) override;
  std::vector<NumberedSum> read_sums() override { return tables_.read_sums(); }
  [[nodiscard]] bool is_nearly_full() const override { return tables_.is_nearly_full(); }
  void renew() override { tables_.renew(); }
  std::vector<EarlierWait> take_earlier_waits() override {
    return read_tasks<EarlierWait>(skeleton_->progs.on_earlier_wait);
  }
  std::vector<Outstanding> take_outstanding() override {
    return read_tasks<Outstanding>(skeleton_->progs.on_each_task);
  }
  std::uint64_t take_silence() override;
  [[nodiscard]] StackOfKernel stack(std::uint32_t number) const override;
  [[nodiscard]] std::vector<Waker> wakers(std::uint32_t number) const override;
  [[nodiscard]] Counts counts() const override;
  [[nodiscard]] LimitedWalks limited_walks() const override;
  [[nodiscard]] KernelMemory memory() const override;

 private:
  /// Announces a change of mappings.  Must be called after the change has been written.
  void announce_change() { std::atomic_ref(skeleton_->bss->changes_announced).fetch_add(1); }
  static int on_record(void* self, void* data, std::size_t bytes);
  void take_record(std::span<const std::byte> bytes) const;
  void take_command_line(std::span<const std::byte> bytes) const;

  Skeleton skeleton_;
  MappedMemory rules_;
  NumberedTables tables_;
  std::array<MappedMemory, kMaxChunks> chunks_;
  std::vector<Link> of_processes_, attached_;
  std::vector<Fd> counter_links_;
  std::unique_ptr<ring_buffer, RingDeleter> ring_;
  const std::function<void(const Sample&)>* on_sample_ = nullptr;  ///< while samples are read
  std::size_t samples_read_ = 0, bytes_read_ = 0;                  ///< by read_samples()
};

LoadedObject::LoadedObject(Skeleton skeleton)
    : skeleton_(std::move(skeleton)),
      rules_(bpf_map__fd(skeleton_->maps.rules), sizeof(RuleEntry) * kMaxRules,
             PROT_READ | PROT_WRITE),
      tables_(*skeleton_),
      ring_(ring_buffer__new(bpf_map__fd(skeleton_->maps.ring), on_record, this, nullptr)) {
  if (!ring_)
    throw_errno("eBPF: ring", errno);
  const auto& programs = skeleton_->progs;
  for (const bpf_program* program :
       {programs.on_rename, programs.on_exec, programs.on_fork, programs.on_exit, programs.on_free})
    of_processes_.push_back(unwind::attach(program));
}

std::span<std::uint32_t> LoadedObject::chunk(std::uint32_t number) {
  MappedMemory& memory = chunks_.at(number);
  constexpr std::size_t kBytes = sizeof(std::uint32_t) * kChunkWords;
  if (memory.start() == nullptr) {
    bpf_map_create_opts options{};
    options.sz = sizeof options;
    options.map_flags = BPF_F_MMAPABLE;
    const Fd map(
        bpf_map_create(BPF_MAP_TYPE_ARRAY, "chunk", sizeof(std::uint32_t), kBytes, 1, &options));
    if (!map)
      throw_errno("eBPF: room for unwind tables", errno);
    MappedMemory mapped(map.get(), kBytes, PROT_READ | PROT_WRITE);
    const int inner = map.get();
    if (bpf_map_update_elem(bpf_map__fd(skeleton_->maps.chunks), &number, &inner, BPF_ANY) != 0)
      throw_errno("eBPF: room for unwind tables", errno);
    memory = std::move(mapped);
  }
  return {static_cast<std::uint32_t*>(memory.start()), kChunkWords};
}

std::span<RuleEntry> LoadedObject::rules() {
  return {static_cast<RuleEntry*>(rules_.start()), kMaxRules};
}

bool LoadedObject::set_process(std::uint32_t tgid, const ProcessMappings& mappings) {
  const int error =
      bpf_map_update_elem(bpf_map__fd(skeleton_->maps.processes), &tgid, &mappings, BPF_ANY);
  announce_change();
  return error == 0;
}

void LoadedObject::forget_process(std::uint32_t tgid) {
  bpf_map_delete_elem(bpf_map__fd(skeleton_->maps.processes), &tgid);
  announce_change();
}

bool LoadedObject::add_target(std::uint32_t tgid, TargetStart start) {
  const auto value = static_cast<std::uint32_t>(start);
  return bpf_map_update_elem(bpf_map__fd(skeleton_->maps.targets), &tgid, &value, BPF_ANY) == 0;
}

bool LoadedObject::set_script(std::uint32_t tgid, const ProcessScript& script) {
  skeleton_->bss->has_scripts = 1;
  return bpf_map_update_elem(bpf_map__fd(skeleton_->maps.scripts), &tgid, &script, BPF_ANY) == 0;
}

void LoadedObject::forget_script(std::uint32_t tgid) {
  bpf_map_delete_elem(bpf_map__fd(skeleton_->maps.scripts), &tgid);
}

bool LoadedObject::add_script_file(const ScriptFileKey& key, const ScriptFile& file) {
  skeleton_->bss->has_script_files = skeleton_->bss->has_scripts = 1;
  return bpf_map_update_elem(bpf_map__fd(skeleton_->maps.script_files), &key, &file, BPF_ANY) == 0;
}

/// Does not use libbpf's own function, which would start the counter.
void LoadedObject::attach_to_counter(int counter, std::uint64_t cookie, CounterKind kind) {
  const auto& programs = skeleton_->progs;
  const bpf_program* program = kind == CounterKind::kProbe ? programs.on_hit : programs.on_sample;
  bpf_link_create_opts options{};
  options.sz = sizeof options;
  options.perf_event.bpf_cookie = cookie;
  Fd link(bpf_link_create(bpf_program__fd(program), counter, BPF_PERF_EVENT, &options));
  const int error = link ? 0 : errno;
  if (error == EMFILE || error == ENFILE)
    throw Error(
        "too many threads: a counter for each, and a link that attaches a program to it, need more "
        "open files than are allowed (ulimit -n)");
  if (error != 0)
    throw_errno("eBPF: attaching to a counter", error);
  counter_links_.push_back(std::move(link));
}

void LoadedObject::set_weight(std::uint64_t cookie, const HitWeight& weight) {
  if (bpf_map_update_elem(bpf_map__fd(skeleton_->maps.hit_weights), &cookie, &weight, BPF_ANY) != 0)
    throw_errno("eBPF: weights of probes", errno);
}

std::uint64_t LoadedObject::attach_to_switches() {
  skeleton_->bss->began_ns = monotonic_ns();
  skeleton_->bss->activity = skeleton_->bss->began_ns << kRunningBits;
  const auto& programs = skeleton_->progs;
  for (const bpf_program* program : {programs.on_switch, programs.on_waking, programs.on_call,
                                     programs.on_lock_wait, programs.on_lock_taken})
    if (bpf_program__autoload(program))
      attached_.push_back(unwind::attach(program));
  return skeleton_->bss->began_ns;
}

/// Counts one more running thread, for good: so no thread sees the silence.
std::uint64_t LoadedObject::take_silence() {
  const std::uint64_t now = monotonic_ns();
  const std::uint64_t before = std::atomic_ref(skeleton_->bss->activity).fetch_add(1);
  const bool is_silent = before << (64 - kRunningBits) == 0;
  return is_silent ? now - (((now << kRunningBits) - before) >> kRunningBits) : 0;
}

int LoadedObject::on_record(void* self, void* data, std::size_t bytes) {
  auto& object = *static_cast<LoadedObject*>(self);
  object.take_record({static_cast<const std::byte*>(data), bytes});
  ++object.samples_read_, object.bytes_read_ += bytes;
  const bool has_enough = object.bytes_read_ >= bpf_map__max_entries(object.skeleton_->maps.ring);
  return has_enough ? -1 : 0;
}

void LoadedObject::take_record(std::span<const std::byte> bytes) const {
  if (bytes.size() < sizeof(SampleRecord))
    return;
  const auto* record = reinterpret_cast<const SampleRecord*>(bytes.data());
  const auto rest = bytes.subspan(sizeof(SampleRecord));
  const std::span<const std::uint64_t> words(reinterpret_cast<const std::uint64_t*>(rest.data()),
                                             rest.size() / sizeof(std::uint64_t));
  if (record->kind == kRecordCommandLine)
    return take_command_line(bytes);
  Sample sample{*record, stack(record->user_stack), stack(record->kernel_stack)};
  std::size_t end = 0;  // in words, of the data before the kernel's frames
  if (record->kind == kRecordScript) {
    sample.script = words.first(std::min<std::size_t>(record->length, words.size()));
  } else if (record->kind == kRecordWholeStack) {
    end = std::min<std::size_t>(record->length, words.size());
    sample.stack = view_stack(words.first(end));
  } else if (record->kind == kRecordWaitEnded && rest.size() >= sizeof(EndedWait)) {
    sample.ended = reinterpret_cast<const EndedWait*>(rest.data());
  } else if ((record->kind == kRecordPassedOn || record->kind == kRecordPassedWaker) &&
             words.size() >= kPassedRegisters) {
    sample.registers = words.first(kPassedRegisters);
    sample.memory = rest.subspan(sample.registers.size_bytes());
    sample.memory =
        sample.memory.first(std::min<std::size_t>(record->length, sample.memory.size()));
    end = kPassedRegisters + sample.memory.size() / sizeof(std::uint64_t);
  }
  if (record->kernel_frames != 0)
    sample.kernel_stack = {
        words.subspan(end).first(std::min<std::size_t>(record->kernel_frames, words.size() - end)),
        kStopEndOfStack, true};
  (*on_sample_)(sample);
}

void LoadedObject::take_command_line(std::span<const std::byte> bytes) const {
  if (bytes.size() < sizeof(CommandLineRecord))
    return;
  const auto& sent = *reinterpret_cast<const CommandLineRecord*>(bytes.data());
  const std::string_view name(std::data(sent.name), std::size(sent.name));
  const std::string_view words(std::data(sent.words), std::size(sent.words));
  (*on_sample_)({.record = sent.record,
                 .stack = {},
                 .name = name.substr(0, name.find('\0')),
                 .words = words.substr(0, sent.record.length)});
}

std::size_t LoadedObject::read_samples(const std::function<void(const Sample&)>& on_sample) {
  on_sample_ = &on_sample;
  samples_read_ = bytes_read_ = 0;
  skeleton_->bss->read_ns = monotonic_ns();
  ring_buffer__consume(ring_.get());
  on_sample_ = nullptr;
  return samples_read_;
}

StackOfKernel LoadedObject::stack(std::uint32_t number) const {
  const auto words = tables_.words_of(number);
  return words.empty() || (words.front() & kHeaderWaker) != 0 ? StackOfKernel{} : view_stack(words);
}

std::vector<Waker> LoadedObject::wakers(std::uint32_t number) const {
  const auto words = tables_.words_of(number);
  if (words.empty() || (words.front() & kHeaderWaker) == 0)
    return {};
  const auto high = [](std::uint64_t word) { return static_cast<std::uint32_t>(word >> 32U); };
  const auto low = [](std::uint64_t word) { return static_cast<std::uint32_t>(word); };
  const auto pairs =
      words.subspan(1, std::min<std::size_t>(words.front() & 0xffff, 2 * kMaxWakers));
  std::vector<Waker> wakers;
  for (std::size_t i = 0; i + 1 < pairs.size(); i += 2)
    wakers.push_back({high(pairs[i]), low(pairs[i]), high(pairs[i + 1]), low(pairs[i + 1])});
  return wakers;
}

Counts LoadedObject::counts() const {
  constexpr std::size_t kNumbers = sizeof(Counts) / sizeof(std::uint64_t);
  using Numbers = std::array<std::uint64_t, kNumbers>;
  std::vector<Numbers> of_cpus(static_cast<std::size_t>(libbpf_num_possible_cpus()));
  const std::uint32_t zero = 0;
  bpf_map_lookup_elem(bpf_map__fd(skeleton_->maps.counts), &zero, of_cpus.data());
  Numbers sum{};
  for (const Numbers& numbers : of_cpus)
    for (std::size_t i = 0; i < kNumbers; ++i)
      sum[i] += numbers[i];
  return std::bit_cast<Counts>(sum);
}

LimitedWalks LoadedObject::limited_walks() const {
  LimitedWalks walks;
  std::ranges::copy(counts().limited, walks.ended_by.begin());
  walks.longest_ns = skeleton_->bss->longest_walk_ns;
  const int map = bpf_map__fd(skeleton_->maps.limited_processes);
  std::uint64_t most = 0;
  std::uint32_t tgid = 0, next = 0;
  for (const std::uint32_t* last = nullptr; bpf_map_get_next_key(map, last, &next) == 0;
       tgid = next, last = &tgid) {
    LimitedProcess process{};
    if (bpf_map_lookup_elem(map, &next, &process) != 0 || process.walks <= most)
      continue;
    most = process.walks;
    walks.process = next;
    const std::string_view name(std::data(process.name), std::size(process.name));
    walks.process_name = name.substr(0, name.find('\0'));
  }
  return walks;
}

/// Returns a map's memory; 0 if the kernel does not report it.
std::uint64_t bytes_of_map(int fd) {
  constexpr std::size_t kMostBytes = 4096;
  constexpr std::string_view kKey = "\nmemlock:\t";
  const auto text = read_small_file(fmt::format("/proc/self/fdinfo/{}", fd), kMostBytes);
  const std::size_t at = text ? text->find(kKey) : std::string::npos;
  if (at == std::string::npos)
    return 0;
  const std::size_t digits = at + kKey.size();
  return parse_number<std::uint64_t>(
             std::string_view(*text).substr(digits, text->find('\n', digits) - digits))
      .value_or(0);
}

/// Returns the size of a thread's storage of that map: the kernel allocates powers of two.
std::uint64_t bytes_of_storage(const bpf_map* map) {
  constexpr std::uint64_t kHead = 80;  // include/linux/bpf_local_storage.h, and a list's pointer
  return std::bit_ceil(bpf_map__value_size(map) + kHead);
}

KernelMemory LoadedObject::memory() const {
  constexpr std::uint64_t kPage = 4096;
  KernelMemory memory;
  const bpf_map* map = nullptr;
  bpf_object__for_each_map(map, skeleton_->obj) memory.map_bytes += bytes_of_map(bpf_map__fd(map));
  for (const MappedMemory& chunk : chunks_)
    if (chunk.start() != nullptr)
      memory.map_bytes += chunk.bytes() + kPage;
  memory.threads = skeleton_->bss->states_found;
  memory.renewals = tables_.renewals();
  memory.thread_bytes =
      memory.threads * bytes_of_storage(skeleton_->maps.threads) +
      std::uint64_t{skeleton_->bss->reusing} * bytes_of_storage(skeleton_->maps.thread_stacks);
  return memory;
}

}  // namespace

std::unique_ptr<BpfObject> load(const LoadOptions& options) {
  refuse_other_pid_namespaces();
  libbpf_set_print(nullptr);                    // its messages are in the log
  std::string log(std::size_t{1} << 20, '\0');  // the verifier's, too
  Skeleton skeleton = open(log);
  configure(*skeleton, fitted(options));
  if (const int error = unwinder__load(skeleton.get()); error != 0) {
    const std::string problem = fmt::format("eBPF: loading programs: {}", errno_text(-error));
    if (error == -EPERM)
      throw recording::Denied(problem + "; need root, or CAP_BPF and CAP_PERFMON");
    if (libbpf_probe_bpf_helper(BPF_PROG_TYPE_KPROBE, BPF_FUNC_loop, nullptr) == 0)
      throw recording::Refused("eBPF: the kernel is too old: Linux 6.1 is needed");
    if (is_short_of_files())
      throw Error("eBPF: programs and tables need more open files than are allowed (ulimit -n)");
    if (error == -ESRCH)  // libbpf returns this, whatever the reason was
      throw Error("eBPF: the kernel's BTF (/sys/kernel/btf/vmlinux) could not be read");
    throw Error(problem + verifier_message(log));
  }
  return std::make_unique<LoadedObject>(std::move(skeleton));
}

}  // namespace pe::unwind
