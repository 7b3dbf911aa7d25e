// The field numbers of pprof's messages.
//
// Source: proto/profile.proto of github.com/google/pprof.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace pe::fold::pprof::field {

enum OfProfile : std::uint32_t {
  kSampleType = 1,
  kSample = 2,
  kMapping = 3,
  kLocation = 4,
  kFunction = 5,
  kStringTable = 6,
  kDurationNanos = 10,
  kPeriodType = 11,
  kPeriod = 12,
  kDefaultSampleType = 14,
};
enum OfSample : std::uint32_t { kLocationId = 1, kValue = 2, kLabel = 3 };
enum OfLocation : std::uint32_t { kId = 1, kMappingId = 2, kAddress = 3, kLine = 4 };

}  // namespace pe::fold::pprof::field
