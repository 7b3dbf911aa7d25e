// SPDX-License-Identifier: MIT
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <vector>

#include "stackfold/formats/pprof/pprof_raw.h"
#include "support/costly.h"
#include "support/stackfold.h"

using pe::testing::Result;

using pe::testing::stackfold;

BOOST_AUTO_TEST_SUITE(pprof_profiles)

namespace {

/// Writes a profile field by field (profile.proto).
class ProfileBuilder {
 public:
  ProfileBuilder& type(std::uint64_t type, std::uint64_t unit) {
    protozero::pbf_writer profile(text_);
    protozero::pbf_writer message(profile, 1);
    message.add_uint64(1, type);
    message.add_uint64(2, unit);
    return *this;
  }
  ProfileBuilder& sample(const std::vector<std::uint64_t>& locations,
                         const std::vector<std::int64_t>& values, bool is_packed = true) {
    protozero::pbf_writer profile(text_);
    protozero::pbf_writer message(profile, 2);
    if (is_packed) {
      message.add_packed_uint64(1, locations.begin(), locations.end());
      message.add_packed_int64(2, values.begin(), values.end());
    } else {
      for (const auto id : locations)
        message.add_uint64(1, id);
      for (const auto value : values)
        message.add_int64(2, value);
    }
    return *this;
  }
  ProfileBuilder& mapping(std::uint64_t id, std::uint64_t start, std::uint64_t offset,
                          std::uint64_t file_name) {
    protozero::pbf_writer profile(text_);
    protozero::pbf_writer message(profile, 3);
    message.add_uint64(1, id);
    message.add_uint64(2, start);
    message.add_uint64(4, offset);
    message.add_uint64(5, file_name);
    return *this;
  }
  ProfileBuilder& location(std::uint64_t id, std::uint64_t mapping, std::uint64_t address,
                           const std::vector<std::uint64_t>& functions = {}) {
    protozero::pbf_writer profile(text_);
    protozero::pbf_writer message(profile, 4);
    message.add_uint64(1, id);
    message.add_uint64(2, mapping);
    message.add_uint64(3, address);
    for (const auto function : functions) {
      protozero::pbf_writer line(message, 4);
      line.add_uint64(1, function);
    }
    return *this;
  }
  ProfileBuilder& function(std::uint64_t id, std::uint64_t name) {
    protozero::pbf_writer profile(text_);
    protozero::pbf_writer message(profile, 5);
    message.add_uint64(1, id);
    message.add_uint64(2, name);
    return *this;
  }
  ProfileBuilder& strings(const std::vector<std::string>& strings) {
    protozero::pbf_writer profile(text_);
    for (const auto& string : strings)
      profile.add_string(6, string);
    return *this;
  }
  ProfileBuilder& default_type(std::uint64_t type) {
    protozero::pbf_writer(text_).add_uint64(14, type);
    return *this;
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// A profile with the types "samples/count" and "cpu/nanoseconds", and the functions 1 "main" and 2
/// "f".
ProfileBuilder two_types() {
  ProfileBuilder builder;
  builder.type(1, 2)
      .type(3, 4)
      .function(1, 5)
      .function(2, 6)
      .location(1, 0, 1, {1})
      .location(2, 0, 2, {2});
  return builder;
}
const std::vector<std::string> kStrings = {
    "",     "samples", "count",   "cpu",          "nanoseconds",
    "main", "f",       "libx.so", "/lib/libx.so", "[kernel.kallsyms]"};

}  // namespace

BOOST_AUTO_TEST_CASE(the_last_type_is_folded_if_none_is_named) {
  const auto profile = two_types().sample({2, 1}, {3, 5000}).strings(kStrings).text();
  BOOST_TEST(stackfold({}, profile).out == "main;f 5\n");  // microseconds
  BOOST_TEST(stackfold({"--event", "samples"}, profile).out == "main;f 3\n");
  BOOST_TEST(stackfold({"--event", "cpu/nanoseconds"}, profile).out == "main;f 5\n");
  BOOST_TEST(stackfold({"--all-events"}, profile).out == "cpu;main;f 5\nsamples;main;f 3\n");
}

BOOST_AUTO_TEST_CASE(a_profile_without_samples_adds_nothing) {
  const auto r = stackfold({}, two_types().strings(kStrings).text());
  BOOST_TEST(r.out == "");
  BOOST_TEST(r.err == "stackfold: stdin: 0 samples in it\n");
  BOOST_TEST(r.status == 0);
}

BOOST_AUTO_TEST_CASE(the_profile_may_name_its_default_type) {
  const auto profile =
      two_types().sample({2, 1}, {3, 5000}).strings(kStrings).default_type(1).text();
  BOOST_TEST(stackfold({}, profile).out == "main;f 3\n");
}

BOOST_AUTO_TEST_CASE(nanoseconds_are_added_before_they_are_rounded) {
  const auto profile = two_types()
                           .sample({1}, {1, 400})
                           .sample({1}, {1, 400})
                           .sample({1}, {1, 400})
                           .strings(kStrings)
                           .text();
  BOOST_TEST(stackfold({}, profile).out == "main 1\n");
}

BOOST_AUTO_TEST_CASE(a_type_that_is_not_there_is_an_error) {
  const auto r = stackfold({"--event", "heap"}, two_types().strings(kStrings).text());
  BOOST_TEST(r.status == 1);
  BOOST_TEST(r.err == "stackfold: stdin: no sample type 'heap' (it has samples, cpu)\n");
}

BOOST_AUTO_TEST_CASE(numbers_may_come_one_by_one) {
  const auto profile = two_types().sample({2, 1}, {3, 5000}, false).strings(kStrings).text();
  BOOST_TEST(stackfold({}, profile).out == "main;f 5\n");
}

BOOST_AUTO_TEST_CASE(inlined_functions_are_frames_of_their_own) {
  const auto profile = two_types()
                           .location(3, 0, 3, {2, 1})  // f inlined into main
                           .sample({3}, {1, 1000})
                           .strings(kStrings)
                           .text();
  BOOST_TEST(stackfold({}, profile).out == "main;f 1\n");
  BOOST_TEST(stackfold({"--annotate"}, profile).out == "main;f_[i] 1\n");
}

BOOST_AUTO_TEST_CASE(what_has_no_function_is_module_and_offset) {
  const auto profile = two_types()
                           .mapping(1, 0x7000, 0x1000, 8)
                           .mapping(2, 0, 0, 9)
                           .location(3, 1, 0x7020)
                           .location(4, 2, 0xffff)
                           .location(5, 9, 0x1)
                           .sample({4, 3, 5, 77}, {1, 1000})
                           .strings(kStrings)
                           .text();
  BOOST_TEST(stackfold({}, profile).out ==
             "[unknown];[unknown];libx.so+0x1020;[kernel]+0xffff 1\n");
  BOOST_TEST(stackfold({"--annotate"}, profile).out ==
             "[unknown];[unknown];libx.so+0x1020_[l];[kernel]+0xffff_[k] 1\n");
}

BOOST_AUTO_TEST_CASE(what_a_profile_refers_to_and_lacks_is_said) {
  const auto made = two_types()
                        .mapping(1, 0, 0, 99)          // no such string
                        .function(5, 99)               // no such string
                        .location(3, 0, 0x10, {5})     // function without a name
                        .location(4, 0, 0x10, {7, 1})  // no such function
                        .location(5, 0, 0x10, {0})     // refers to no function
                        .location(6, 1, 0x10)          // mapping without a name
                        .location(7, 8, 0x10)          // no such mapping
                        .sample({5}, {1, 1000})
                        .sample({3, 4, 6, 7, 77, 3}, {1, 1000})
                        .strings(kStrings)
                        .text();
  const auto r = stackfold({}, made);
  BOOST_TEST(r.err ==
             "stackfold: stdin: 1 location that it does not define, 4 locations with a function, "
             "mapping or string that it does not define\n");
  BOOST_TEST(r.status == 1);
  BOOST_TEST(
      stackfold(
          {}, two_types().location(3, 0, 0x10, {0}).sample({3}, {1, 1000}).strings(kStrings).text())
          .err == "");
  const auto types = ProfileBuilder().type(1, 99).sample({1}, {1}).location(1, 0, 1);
  BOOST_TEST(stackfold({}, ProfileBuilder(types).strings(kStrings).text()).err ==
             "stackfold: stdin: 1 sample type with a string that it does not define\n");
}

BOOST_AUTO_TEST_CASE(counts_below_zero_are_left_out_and_said) {
  const auto r =
      stackfold({"--event", "samples"},
                two_types().sample({1}, {-3, 0}).sample({2}, {3, 0}).strings(kStrings).text());
  BOOST_TEST(r.out == "f 3\n");
  BOOST_TEST(r.err == "stackfold: stdin: 1 count below zero left out\n");
}

BOOST_AUTO_TEST_CASE(a_cut_profile_is_folded_as_far_as_it_goes) {
  auto profile = two_types().strings(kStrings).sample({2, 1}, {3, 5000}).text();
  const auto whole = profile.size();
  profile += two_types().sample({1}, {1, 1000}).text();
  const auto r = stackfold({"--from", "pprof"}, profile.substr(0, whole + 5));
  BOOST_TEST(r.out == "main;f 5\n");
  BOOST_TEST(r.err == "stackfold: stdin: the profile is damaged or cut off\n");
  BOOST_TEST(r.status == 1);
}

BOOST_AUTO_TEST_CASE(what_follows_a_damaged_entry_is_read) {
  const std::string function_without_its_number = "\x2a\x01\x08";
  auto builder = two_types().strings(kStrings);
  const auto profile = function_without_its_number + builder.sample({2, 1}, {3, 5000}).text();
  const auto r = stackfold({"--from", "pprof"}, profile);
  BOOST_TEST(r.out == "main;f 5\n");
  BOOST_TEST(r.err == "stackfold: stdin: damaged entries of the profile left out: 1\n");
  BOOST_TEST(r.status == 1);
}

BOOST_AUTO_TEST_CASE(fields_of_another_kind_are_stepped_over) {
  // Fuzzing found these: a message and a string encoded as numbers, a number encoded as a message.
  const std::string odd = std::string("\x20\x05\x30\x01\x0a\x00", 6) + "\x72\x02xy";
  const auto profile = two_types().strings(kStrings).sample({2, 1}, {3, 5000}).text() + odd;
  BOOST_TEST(stackfold({"--event", "cpu"}, profile).out == "main;f 5\n");
}

BOOST_AUTO_TEST_CASE(a_very_deep_stack_is_folded, *pe::tests::costly()) {
  const std::vector<std::uint64_t> deep(100'000, 1);
  const auto r = stackfold({}, two_types().sample(deep, {1, 1000}).strings(kStrings).text());
  BOOST_TEST(r.status == 0);
  BOOST_TEST(r.out.size() == 100'000 * 5 + 2);
}

BOOST_AUTO_TEST_CASE(gzip_data_that_is_no_profile_is_said) {
  const auto r = stackfold({}, "\x1f\x8b\x09 garbage");
  BOOST_TEST(r.status == 1);
  BOOST_TEST(r.err == "stackfold: stdin: the gzip data is damaged\n");
  const std::string folded =  // printf 'a;b 1\n' | gzip -n
      std::string("\x1f\x8b\x08\0\0\0\0\0\0\x03\x4b\xb4\x4e\x52\x30\xe4\x02\0", 18) +
      std::string("\x0f\x63\x71\x2b\x06\0\0\0", 8);
  BOOST_TEST(stackfold({}, folded).err ==
             "stackfold: stdin: not a pprof profile (unpack other files: gzip -dc FILE | "
             "stackfold)\n");
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(pprof_raw_text)

BOOST_AUTO_TEST_CASE(a_function_is_found_in_front_of_its_place) {
  using pe::fold::pprof_raw::function_of;
  BOOST_TEST(function_of("main.f[go.shape.int] /src/my/main.go:7:3 s=5(main.f)") ==
             "main.f[go.shape.int]");
  BOOST_TEST(function_of("A::f(int, char) a.cc:1 s=0") == "A::f(int, char)");
  BOOST_TEST(function_of("f :0 s=0") == "f");
  BOOST_TEST(function_of("runtime.memmove C:/Program Files/Go/src/memmove_amd64.s:150:0 s=42") ==
             "runtime.memmove");
  BOOST_TEST(function_of("main.(*Srv[...]).run D:\\my work\\main.go:9 s=3") ==
             "main.(*Srv[...]).run");
  BOOST_TEST(function_of("operator new(unsigned long) /my src/new.cc:9 s=3") ==
             "operator new(unsigned long)");
  BOOST_TEST(function_of("f(int, char)") == "f(int, char)");
}

BOOST_AUTO_TEST_CASE(the_first_type_is_folded_or_the_one_marked) {
  const auto text = [](const std::string& types) {
    return "Samples:\n" + types + "\n   2   7: 1 2 \n   bytes:[8]\nLocations\n" +
           "     1: 0x1 M=1 f /f.go:1 s=0\n     2: 0x7020 M=1 \nMappings\n" +
           "1: 0x7000/0x8000/0x1000 /lib/libx.so\n";
  };
  BOOST_TEST(stackfold({}, text("a/count b/bytes")).out == "libx.so+0x1020;f 2\n");
  BOOST_TEST(stackfold({}, text("a/count b/bytes[dflt]")).out == "libx.so+0x1020;f 7\n");
  BOOST_TEST(stackfold({"--event", "b"}, text("a/count b/bytes")).out == "libx.so+0x1020;f 7\n");
  BOOST_TEST(stackfold({"--event", "c"}, text("a/count b/bytes")).status == 1);
}

BOOST_AUTO_TEST_SUITE_END()
