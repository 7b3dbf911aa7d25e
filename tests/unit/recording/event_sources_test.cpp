// SPDX-License-Identifier: MIT
#include "recording/counters/event_name.h"

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "support/temp_dir.h"

BOOST_AUTO_TEST_SUITE(event_sources)

namespace {

using pe::recording::EventSources;
using pe::recording::parse_event;
using pe::recording::similar_names;

/// The devices of a machine with two PMUs, as files.
class Machine {
 public:
  Machine() {
    write("cpu/type", "4\n");
    write("cpu/format/event", "config:0-7,32-35\n");
    write("cpu/format/umask", "config:8-15\n");
    write("cpu/format/inv", "config:23\n");
    write("cpu/format/ldlat", "config1:0-15\n");
    write("cpu/events/mem-loads", "event=0x1cd,umask=0x1,ldlat=3\n");
    write("cpu/events/cache-misses-all", "event=0x2e\n");
    write("cpu/events/by-domain", "event=1,domain=?\n");
    write("power/type", "23\n");
    write("power/format/event", "config:0-7\n");
    write("power/events/energy-pkg", "event=0x02\n");
    write("power/events/energy-pkg.scale", "2.3283064365386962890625e-10\n");
  }

  /// Sets an event.  Returns the message if it is refused.
  std::string set(const std::string& event) {
    attr = {};
    try {
      EventSources(folder_ / "").set_event(attr, parse_event(event));
    } catch (const pe::UsageError& error) {
      return error.what();
    }
    return "";
  }

  /// Returns "u" if the attr counts user code, then "k" and "h", and the precision.
  [[nodiscard]] std::string counted() const {
    return std::string(attr.exclude_user ? "-" : "u") + (attr.exclude_kernel ? "-" : "k") +
           (attr.exclude_hv ? "-" : "h") + std::to_string(attr.precise_ip);
  }

  perf_event_attr attr{};

 private:
  void write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = folder_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }

  pe::testing::TempDir folder_;
};

}  // namespace

BOOST_AUTO_TEST_CASE(terms_set_their_bits) {
  Machine machine;
  BOOST_TEST(machine.set("cpu/event=0x1cd,umask=0x1,inv,ldlat=30/") == "");
  BOOST_TEST(machine.attr.type == 4U);
  BOOST_TEST(machine.attr.config == 0x1'0080'01cdU);
  BOOST_TEST(machine.attr.config1 == 30U);
}

BOOST_AUTO_TEST_CASE(a_named_event_is_its_terms_and_later_terms_override) {
  Machine machine;
  BOOST_TEST(machine.set("cpu/mem-loads,ldlat=50/") == "");
  BOOST_TEST(machine.attr.config == 0x1'0000'01cdU);
  BOOST_TEST(machine.attr.config1 == 50U);
  BOOST_TEST(machine.set("power/energy-pkg/") == "");
  BOOST_TEST(machine.attr.type == 23U);
  BOOST_TEST(machine.attr.config == 2U);
}

BOOST_AUTO_TEST_CASE(a_named_event_needs_no_pmu) {
  Machine machine;
  BOOST_TEST(machine.set("energy-pkg") == "");
  BOOST_TEST(machine.attr.type == 23U);
  BOOST_TEST(machine.set("mem-loads:u") == "");
  BOOST_TEST(machine.attr.type == 4U);
  BOOST_TEST(machine.counted() == "u--0");
}

BOOST_AUTO_TEST_CASE(whole_words_can_be_set) {
  Machine machine;
  BOOST_TEST(machine.set("cpu/config=0x12345,config1=7,config2=8/") == "");
  BOOST_TEST(machine.attr.config == 0x12345U);
  BOOST_TEST(machine.attr.config1 == 7U);
  BOOST_TEST(machine.attr.config2 == 8U);
}

BOOST_AUTO_TEST_CASE(modifiers_exclude_the_others) {
  Machine machine;
  const auto counted = [&machine](const std::string& event) {
    BOOST_TEST(machine.set(event) == "");
    return machine.counted();
  };
  BOOST_TEST(counted("cycles") == "ukh0");
  BOOST_TEST(counted("cycles:k") == "-k-0");
  BOOST_TEST(counted("cycles:ukpp") == "uk-2");
  BOOST_TEST(counted("cycles:p") == "ukh1");
  BOOST_TEST(machine.set("r1a8:u") == "");
  BOOST_TEST(machine.attr.type == std::uint32_t{PERF_TYPE_RAW});
  BOOST_TEST(machine.attr.config == 0x1a8U);
}

BOOST_AUTO_TEST_CASE(unknown_names_are_refused_with_similar_ones) {
  Machine machine;
  BOOST_TEST(machine.set("cyclse") == "--event: no such event: 'cyclse'; did you mean cycles?");
  BOOST_TEST(machine.set("energy-pgk") ==
             "--event: no such event: 'energy-pgk'; did you mean energy-pkg?");
  BOOST_TEST(machine.set("something") ==
             "--event: no such event: 'something'; perf list shows all");
  BOOST_TEST(machine.set("gpu/x/") == "--event: no such PMU: 'gpu'; this machine has cpu, power");
  BOOST_TEST(machine.set("cpu/mem-load/") ==
             "--event: cpu/mem-load/: the PMU has no term or event 'mem-load'; did you mean "
             "mem-loads?");
  BOOST_TEST(machine.set("power/energy-pkg.scale/") ==
             "--event: power/energy-pkg.scale/: the PMU has no term or event 'energy-pkg.scale'; "
             "perf list shows all");
}

BOOST_AUTO_TEST_CASE(values_must_fit_and_be_there) {
  Machine machine;
  BOOST_TEST(machine.set("cpu/umask=0x100/") ==
             "--event: cpu/umask/: 0x100 is too large: the term has 8 bits");
  BOOST_TEST(machine.set("cpu/by-domain/") ==
             "--event: cpu/by-domain/: it needs values: event=1,domain=?");
}

BOOST_AUTO_TEST_CASE(probes_are_events_of_their_pmus) {
  const pe::testing::TempDir folder;
  const auto write = [&](const std::string& name, const std::string& text) {
    const std::filesystem::path path = folder / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  };
  write("uprobe/type", "9\n");
  write("uprobe/format/retprobe", "config:0\n");
  write("uprobe/format/ref_ctr_offset", "config:32-63\n");
  write("kprobe/type", "8\n");
  write("kprobe/format/retprobe", "config:0\n");
  const EventSources sources(folder / "");
  using pe::recording::Probe;
  using pe::recording::ProbeKind;
  const auto text_at = [](std::uint64_t address) {
    return std::string(reinterpret_cast<const char*>(static_cast<std::uintptr_t>(address)));
  };
  perf_event_attr attr{};
  const Probe of_user{.kind = ProbeKind::kUsdt,
                      .target = "/bin/sh",
                      .offsets = {0x1234},
                      .semaphore_offset = 0x5678};
  sources.set_probe(attr, of_user);
  BOOST_TEST(attr.type == 9U);
  BOOST_TEST(attr.config == 0x5678'0000'0000U);
  BOOST_TEST(text_at(attr.config1) == "/bin/sh");
  BOOST_TEST(attr.config2 == 0x1234U);
  const Probe of_kernel{.kind = ProbeKind::kKretprobe, .target = "vfs_read", .offsets = {0}};
  sources.set_probe(attr, of_kernel);
  BOOST_TEST(attr.type == 8U);
  BOOST_TEST(attr.config == 1U);
  BOOST_TEST(text_at(attr.config1) == "vfs_read");
}

BOOST_AUTO_TEST_CASE(a_kernel_without_probes_is_named) {
  const pe::testing::TempDir folder;
  perf_event_attr attr{};
  const pe::recording::Probe probe{
      .kind = pe::recording::ProbeKind::kKprobe, .target = "vfs_read", .offsets = {0}};
  try {
    EventSources(folder / "").set_probe(attr, probe);
    BOOST_FAIL("accepted");
  } catch (const pe::Error& error) {
    BOOST_TEST(
        std::string(error.what()).starts_with("--event: kprobe: this kernel has no kprobes"));
    BOOST_TEST(std::string(error.what()).ends_with("CONFIG_KPROBE_EVENTS)"));
  }
}

BOOST_AUTO_TEST_CASE(the_most_similar_names_come_first) {
  const std::vector<std::string> names{"branches", "branch-misses", "faults", "minor-faults"};
  BOOST_TEST(similar_names("branchs", names) == std::vector<std::string>{"branches"},
             boost::test_tools::per_element());
  BOOST_TEST(similar_names("zzzzzz", names).empty());
  BOOST_TEST(similar_names(std::string(1000, 'a'), names).empty());
}

BOOST_AUTO_TEST_SUITE_END()
