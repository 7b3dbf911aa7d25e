// SPDX-License-Identifier: MIT
#include "unwind/cfi/expression.h"

#include <dwarf.h>

#include <array>
#include <limits>
#include <utility>

#include "unwind/cfi/pointer_encoding.h"

namespace pe::unwind {
namespace {

using Value = std::uint64_t;
using SignedValue = std::int64_t;

/// The stack of values.  Reading too deep or pushing too many spoils it; one later check finds
/// this.
class Values {
 public:
  void push(Value value) noexcept {
    if (depth_ == values_.size())
      is_spoilt_ = true;
    else
      values_[depth_++] = value;
  }
  Value pop() noexcept {
    if (depth_ == 0) {
      is_spoilt_ = true;
      return 0;
    }
    return values_[--depth_];
  }
  /// The value `index` below the top.
  Value pick(Value index) noexcept {
    if (index >= depth_) {
      is_spoilt_ = true;
      return 0;
    }
    return values_[depth_ - 1 - index];
  }
  [[nodiscard]] bool is_spoilt() const noexcept { return is_spoilt_; }

 private:
  std::array<Value, kMaxExpressionDepth> values_;
  std::size_t depth_ = 0;
  bool is_spoilt_ = false;
};

class Evaluator {
 public:
  Evaluator(Bytes expression, const ExpressionInput& input)
      : expression_(expression), in_(expression), input_(input) {
    if (input.cfa)
      values_.push(*input.cfa);
  }

  std::variant<Value, Step> run() {
    unsigned operations = 0;
    while (!in_.empty() && failure_ == Step::kDone) {
      if (++operations > kMaxExpressionOperations)
        return Step::kUnusable;
      run_one(take<std::uint8_t>());
      if (values_.is_spoilt())
        return Step::kUnusable;
    }
    if (failure_ != Step::kDone)
      return failure_;
    const Value result = values_.pop();
    return values_.is_spoilt() ? std::variant<Value, Step>(Step::kUnusable) : result;
  }

 private:
  void fail(Step why) noexcept {
    if (failure_ == Step::kDone)
      failure_ = why;
  }

  template <typename T>
  T take() noexcept {
    const auto value = in_.take<T>();
    if (!value)
      fail(Step::kUnusable);
    return value.value_or(T{});
  }
  Value take_unsigned() noexcept {
    const auto value = read_uleb128(in_);
    if (!value)
      fail(Step::kUnusable);
    return value.value_or(0);
  }
  Value take_signed() noexcept {
    const auto value = read_sleb128(in_);
    if (!value)
      fail(Step::kUnusable);
    return static_cast<Value>(value.value_or(0));
  }

  void run_one(std::uint8_t op) {
    if (op >= DW_OP_lit0 && op <= DW_OP_lit31)
      return values_.push(op - DW_OP_lit0);
    if (op >= DW_OP_breg0 && op <= DW_OP_breg31)
      return push_register(op - DW_OP_breg0);
    if (!push_constant(op) && !shuffle(op) && !compute_one(op) && !compute_two(op) && !jump(op))
      read_outside(op);
  }

  void push_register(Value number) {
    const Value offset = take_signed();
    const auto value = input_.registers.get(number);
    if (!value)
      return fail(Step::kUnknownRegister);
    values_.push(*value + offset);
  }

  bool push_constant(std::uint8_t op) {
    switch (op) {
      case DW_OP_const1u:
        values_.push(take<std::uint8_t>());
        return true;
      case DW_OP_const1s:
        values_.push(static_cast<Value>(SignedValue{take<std::int8_t>()}));
        return true;
      case DW_OP_const2u:
        values_.push(take<std::uint16_t>());
        return true;
      case DW_OP_const2s:
        values_.push(static_cast<Value>(SignedValue{take<std::int16_t>()}));
        return true;
      case DW_OP_const4u:
        values_.push(take<std::uint32_t>());
        return true;
      case DW_OP_const4s:
        values_.push(static_cast<Value>(SignedValue{take<std::int32_t>()}));
        return true;
      case DW_OP_const8u:
      case DW_OP_const8s:
        values_.push(take<Value>());
        return true;
      case DW_OP_constu:
        values_.push(take_unsigned());
        return true;
      case DW_OP_consts:
        values_.push(take_signed());
        return true;
      default:
        return false;
    }
  }

  bool shuffle(std::uint8_t op) {
    switch (op) {
      case DW_OP_dup:
        values_.push(values_.pick(0));
        return true;
      case DW_OP_drop:
        values_.pop();
        return true;
      case DW_OP_over:
        values_.push(values_.pick(1));
        return true;
      case DW_OP_pick:
        values_.push(values_.pick(take<std::uint8_t>()));
        return true;
      case DW_OP_swap:
      case DW_OP_rot: {
        const Value first = values_.pop();
        const Value second = values_.pop();
        const Value third = op == DW_OP_rot ? values_.pop() : 0;
        values_.push(first);
        if (op == DW_OP_rot)
          values_.push(third);
        values_.push(second);
        return true;
      }
      default:
        return false;
    }
  }

  bool compute_one(std::uint8_t op) {
    switch (op) {
      case DW_OP_nop:
        return true;
      case DW_OP_abs: {
        const Value value = values_.pop();
        values_.push(static_cast<SignedValue>(value) < 0 ? -value : value);
        return true;
      }
      case DW_OP_neg:
        values_.push(-values_.pop());
        return true;
      case DW_OP_not:
        values_.push(~values_.pop());
        return true;
      case DW_OP_plus_uconst:
        values_.push(values_.pop() + take_unsigned());
        return true;
      default:
        return false;
    }
  }

  bool compute_two(std::uint8_t op) {
    const bool is_arithmetic = op >= DW_OP_and && op <= DW_OP_xor;
    const bool is_comparison = op >= DW_OP_eq && op <= DW_OP_ne;
    if (!is_arithmetic && !is_comparison)
      return false;
    const Value right = values_.pop();
    const Value left = values_.pop();
    values_.push(is_comparison ? compared(op, left, right) : computed(op, left, right));
    return true;
  }

  static Value compared(std::uint8_t op, Value left, Value right) noexcept {
    const auto a = static_cast<SignedValue>(left);
    const auto b = static_cast<SignedValue>(right);
    switch (op) {
      case DW_OP_eq:
        return a == b ? 1 : 0;
      case DW_OP_ge:
        return a >= b ? 1 : 0;
      case DW_OP_gt:
        return a > b ? 1 : 0;
      case DW_OP_le:
        return a <= b ? 1 : 0;
      case DW_OP_lt:
        return a < b ? 1 : 0;
      default:
        return a != b ? 1 : 0;
    }
  }

  Value computed(std::uint8_t op, Value left, Value right) noexcept {
    switch (op) {
      case DW_OP_and:
        return left & right;
      case DW_OP_minus:
        return left - right;
      case DW_OP_mul:
        return left * right;
      case DW_OP_or:
        return left | right;
      case DW_OP_plus:
        return left + right;
      case DW_OP_shl:
        return right < 64 ? left << right : 0;
      case DW_OP_shr:
        return right < 64 ? left >> right : 0;
      case DW_OP_shra:
        return static_cast<Value>(static_cast<SignedValue>(left) >> (right < 64 ? right : 63));
      case DW_OP_xor:
        return left ^ right;
      case DW_OP_mod:
      case DW_OP_div:
        return divided(op, left, right);
      default:  // neg, not and plus_uconst are between these and were handled before
        fail(Step::kUnusable);
        return 0;
    }
  }

  Value divided(std::uint8_t op, Value left, Value right) noexcept {
    if (right == 0) {
      fail(Step::kUnusable);
      return 0;
    }
    if (op == DW_OP_mod)
      return left % right;
    if (right == ~Value{0})  // -1: only this division can overflow
      return -left;
    return static_cast<Value>(static_cast<SignedValue>(left) / static_cast<SignedValue>(right));
  }

  bool jump(std::uint8_t op) {
    if (op != DW_OP_skip && op != DW_OP_bra)
      return false;
    const auto distance = take<std::int16_t>();
    if (op == DW_OP_bra && values_.pop() == 0)
      return true;
    const auto here = static_cast<SignedValue>(expression_.size() - in_.left().size());
    const SignedValue target = here + distance;
    if (target < 0 || static_cast<Value>(target) > expression_.size())
      fail(Step::kUnusable);
    else
      in_ = ByteReader(expression_.subspan(static_cast<std::size_t>(target)));
    return true;
  }

  void read_outside(std::uint8_t op) {
    switch (op) {
      case DW_OP_bregx:
        return push_register(take_unsigned());
      case DW_OP_addr:
        return values_.push(take<Value>());
      case DW_OP_deref:
        return dereference(sizeof(Value));
      case DW_OP_deref_size:
        return dereference(take<std::uint8_t>());
      case DW_OP_call_frame_cfa:
        return input_.cfa ? values_.push(*input_.cfa) : fail(Step::kUnusable);
      default:
        return fail(Step::kUnusable);
    }
  }

  /// Narrow reads use the lower part of a whole word: the copied stack ends at a word.
  void dereference(unsigned bytes) {
    if (bytes == 0 || bytes > sizeof(Value))
      return fail(Step::kUnusable);
    const auto word = input_.stack.read(values_.pop());
    if (!word)
      return fail(Step::kNotCaptured);
    const unsigned unused_bits = 8 * (sizeof(Value) - bytes);
    values_.push(*word << unused_bits >> unused_bits);
  }

  Bytes expression_;
  ByteReader in_;
  const ExpressionInput& input_;
  Values values_;
  Step failure_ = Step::kDone;
};

}  // namespace

std::variant<std::uint64_t, Step> evaluate(Bytes expression, const ExpressionInput& input) {
  return Evaluator(expression, input).run();
}

std::optional<SimpleExpression> simple_expression(Bytes expression) noexcept {
  ByteReader in(expression);
  const auto first = in.take<std::uint8_t>();
  if (!first || *first < DW_OP_breg0 || *first > DW_OP_breg31)
    return std::nullopt;
  const auto offset = read_sleb128(in);
  if (!offset)
    return std::nullopt;
  SimpleExpression simple{.register_number = static_cast<unsigned>(*first - DW_OP_breg0),
                          .offset = *offset};
  if (in.empty())
    return simple;
  if (in.take<std::uint8_t>() != DW_OP_deref)
    return std::nullopt;
  simple.is_load = true;
  if (in.empty())
    return simple;
  if (in.take<std::uint8_t>() != DW_OP_plus_uconst)
    return std::nullopt;
  const auto addend = read_uleb128(in);
  if (!addend || !in.empty())
    return std::nullopt;
  simple.addend = *addend;
  return simple;
}

}  // namespace pe::unwind
