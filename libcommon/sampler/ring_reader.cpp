// SPDX-License-Identifier: MIT
#include "sampler/ring_reader.h"

namespace pe::sampler {

bool for_each_record(Bytes bytes, const std::function<void(const TakenSample&)>& on_sample) {
  ByteReader reader(bytes);
  while (!reader.empty()) {
    const auto header = reader.take<Sample>();
    if (!header || header->stack_bytes > bytes.size() ||
        header->bytes != record_bytes(header->stack_bytes))
      return false;
    const auto stack = reader.take_bytes(header->stack_bytes);
    if (!stack || !reader.skip(header->bytes - sizeof(Sample) - header->stack_bytes))
      return false;
    on_sample({*header, *stack});
  }
  return true;
}

}  // namespace pe::sampler
