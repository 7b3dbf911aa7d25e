// SPDX-License-Identifier: MIT
#include "inprocess/sampler/ring_reader.h"

namespace pe::inprocess {

std::optional<TakenSample> take_record(ByteReader& reader) noexcept {
  ByteReader ahead(reader);
  const auto header = ahead.take<Sample>();
  if (!header || header->stack_bytes > ahead.left().size() ||
      header->bytes != record_bytes(header->stack_bytes))
    return std::nullopt;
  const auto stack = ahead.take_bytes(header->stack_bytes);
  if (!stack || !ahead.skip(header->bytes - sizeof(Sample) - header->stack_bytes))
    return std::nullopt;
  reader = ahead;
  return TakenSample{*header, *stack};
}

bool for_each_record(Bytes bytes, const std::function<void(const TakenSample&)>& on_sample) {
  ByteReader reader(bytes);
  while (const auto sample = take_record(reader))
    on_sample(*sample);
  return reader.empty();
}

}  // namespace pe::inprocess
