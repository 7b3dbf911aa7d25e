// operator new and delete in all their forms.
//
// If the program would call those of libstdc++, they are counted like malloc and free: the first
// frame is the caller of new.  (They are malloc and free, except when there is no memory.)  The
// same applies to those of the library that provides malloc (jemalloc, tcmalloc, mimalloc).  Such
// libraries let free accept blocks of new, and whichever new and delete the program calls, the
// calls come here.  After a failure the real operator tries again, calls the new handler and
// throws.  If the program or a library has its own operators, only these are called; the
// allocations that they make are counted.
// SPDX-License-Identifier: MIT
#include "malloctrace/preload/hooks/hooks_new.h"

#include <dlfcn.h>
#include <link.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "malloctrace/preload/hooks/allocator_call.h"
#include "malloctrace/preload/process.h"
#include "malloctrace/preload/record.h"
#include "recording/inprocess/keep_errno.h"

namespace pe::malloctrace {

constinit RealFunctions
    real{};  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables): one a process

namespace {

bool is_in_glibc(const void* address) noexcept {
  Dl_info info{};
  if (::dladdr(address, &info) == 0 || info.dli_fname == nullptr)
    return false;
  const std::string_view path(info.dli_fname);
  return path.substr(path.rfind('/') + 1).starts_with("libc.so.6");
}

bool is_all_in_glibc() noexcept {
#define PE_FUNCTION(name) reinterpret_cast<const void*>(real.name),
  for (const void* function : {PE_MALLOCTRACE_ALLOCATES(PE_FUNCTION)})
    if (function != nullptr && !is_in_glibc(function))
      return false;
#undef PE_FUNCTION
  return true;
}

}  // namespace

bool is_stub(const void* function) noexcept {
  Dl_info info{};
  void* found = nullptr;
  if (::dladdr1(function, &info, &found, RTLD_DL_SYMENT) == 0)
    return false;
  const auto* symbol = static_cast<const ElfW(Sym)*>(found);
  return symbol != nullptr && symbol->st_shndx == SHN_UNDEF;
}

bool is_ours(const void* function) noexcept {
  Dl_info other{};
  Dl_info own{};
  if (::dladdr(function, &other) == 0 || ::dladdr(&real, &own) == 0)
    return false;
  return is_stub(function) || other.dli_fbase == own.dli_fbase;
}

bool has_own_malloc() noexcept { return !is_ours(::dlsym(RTLD_DEFAULT, "malloc")); }

bool find_real_functions() noexcept {
  if (real.is_ready)
    return true;
  static bool is_searching = false;
  if (is_searching)
    return false;
  is_searching = true;
  const inprocess::KeepErrno keep;
  real.find();
  inprocess::find_behind("_exit", real.exit_now);
  real.is_glibc = is_in_glibc(reinterpret_cast<void*>(real.malloc));
  real.may_call_hooks = !is_all_in_glibc();
  real.is_ready = true;
  is_searching = false;
  return true;
}

namespace {

enum class NewMode : std::uint8_t {
  kUnknown,
  kAsMalloc,  ///< libstdc++'s or the allocator's would be called
  kForward,   ///< others would be called
  kAlone,     ///< there is no other: we hide the C++ library inside another library
};

/// All names, in the order of Function.
constexpr std::array kNames = {
    "_Znwm",
    "_Znam",
    "_ZnwmRKSt9nothrow_t",
    "_ZnamRKSt9nothrow_t",
    "_ZnwmSt11align_val_t",
    "_ZnamSt11align_val_t",
    "_ZnwmSt11align_val_tRKSt9nothrow_t",
    "_ZnamSt11align_val_tRKSt9nothrow_t",
    "_ZdlPv",
    "_ZdaPv",
    "_ZdlPvm",
    "_ZdaPvm",
    "_ZdlPvRKSt9nothrow_t",
    "_ZdaPvRKSt9nothrow_t",
    "_ZdlPvSt11align_val_t",
    "_ZdaPvSt11align_val_t",
    "_ZdlPvmSt11align_val_t",
    "_ZdaPvmSt11align_val_t",
    "_ZdlPvSt11align_val_tRKSt9nothrow_t",
    "_ZdaPvSt11align_val_tRKSt9nothrow_t",
};
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
enum Function : std::size_t {
  k_Znwm,
  k_Znam,
  k_ZnwmRKSt9nothrow_t,
  k_ZnamRKSt9nothrow_t,
  k_ZnwmSt11align_val_t,
  k_ZnamSt11align_val_t,
  k_ZnwmSt11align_val_tRKSt9nothrow_t,
  k_ZnamSt11align_val_tRKSt9nothrow_t,
  k_ZdlPv,
  k_ZdaPv,
  k_ZdlPvm,
  k_ZdaPvm,
  k_ZdlPvRKSt9nothrow_t,
  k_ZdaPvRKSt9nothrow_t,
  k_ZdlPvSt11align_val_t,
  k_ZdaPvSt11align_val_t,
  k_ZdlPvmSt11align_val_t,
  k_ZdaPvmSt11align_val_t,
  k_ZdlPvSt11align_val_tRKSt9nothrow_t,
  k_ZdaPvSt11align_val_tRKSt9nothrow_t,
};
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

/// Found when the library starts.  A later query may wait for the dynamic linker's lock.  Its
/// holder, a constructor of a library that is being loaded, may wait for us.
struct NewState {
  std::atomic<NewMode> mode;  ///< written last
  /// The definitions that would be called without us.
  std::array<void*, kNames.size()> next;
};
constinit NewState
    state{};  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables): one a process

std::string_view file_of(const void* function) noexcept {
  Dl_info info{};
  if (::dladdr(function, &info) == 0 || info.dli_fname == nullptr)
    return {};
  const std::string_view path(info.dli_fname);
  return path.substr(path.rfind('/') + 1);
}

bool is_of_libstdcxx(const void* function) noexcept {
  return function != nullptr && file_of(function).starts_with("libstdc++.so");
}

bool is_of_the_allocator(const void* function) noexcept {
  Dl_info info{};
  Dl_info allocator{};
  return function != nullptr && ::dladdr(function, &info) != 0 &&
         ::dladdr(reinterpret_cast<void*>(real.malloc), &allocator) != 0 &&
         info.dli_fbase == allocator.dli_fbase;
}

/// The definition that would be called without us; nullptr if there is none.
void* next_function(const char* name) noexcept { return ::dlsym(inprocess::search_from, name); }

/// The same, but also finds a library that was loaded later and only for a plugin.
void* next_function_now(const char* name) noexcept {
  const inprocess::KeepErrno keep;
  if (void* next = next_function(name); next != nullptr)
    return next;
  void* library = ::dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr)
    return nullptr;
  void* next = ::dlsym(library, name);
  real.dlclose(library);
  return next;
}

NewMode find_mode() noexcept {
  if (!real.is_ready && !find_real_functions())
    return NewMode::kUnknown;
  bool is_alone = true;
  bool is_standard = true;
  for (const Function function : {k_Znwm, k_ZdlPv}) {
    const void* first = ::dlsym(RTLD_DEFAULT, kNames[function]);
    const void* next = next_function(kNames[function]);
    const bool is_first = first == nullptr || process.is_attached || is_ours(first);
    is_alone = is_alone && is_first && next == nullptr;
    is_standard = is_standard && is_first && (is_of_libstdcxx(next) || is_of_the_allocator(next));
  }
  if (is_alone)
    return NewMode::kAlone;
  for (std::size_t i = 0; i < kNames.size(); ++i)
    store_relaxed(state.next[i], next_function(kNames[i]));
  return is_standard ? NewMode::kAsMalloc : NewMode::kForward;
}

NewMode set_mode() noexcept {
  const Uncounted uncounted;  // dlsym(3) allocates messages
  const NewMode mode = find_mode();
  // Hides our failed lookups from the program; the second call frees the message that the first
  // returns.
  ::dlerror();
  ::dlerror();
  state.mode.store(mode, std::memory_order_release);
  return mode;
}

inline NewMode current_mode() noexcept {
  const NewMode mode = state.mode.load(std::memory_order_acquire);
  return mode != NewMode::kUnknown ? mode : set_mode();
}

/// nullptr if there is none.  The dynamic linker is then asked each time: a C++ library may have
/// been loaded since.
void* next_of(Function function) noexcept {
  void* next = load_relaxed(state.next[function]);
  return next != nullptr ? next : next_function_now(kNames[function]);
}

template <typename Result, typename... Arguments>
Result forward(Function function, Arguments... arguments) {
  auto* next = reinterpret_cast<Result (*)(Arguments...)>(next_of(function));
  if (next == nullptr)
    __builtin_trap();  // no C++ library, and no memory: no code can throw
  return next(arguments...);
}

/// For the forms that do not throw.
template <typename... Arguments>
void* forward_or_fail(Function function, Arguments... arguments) {
  auto* next = reinterpret_cast<void* (*)(Arguments...)>(next_of(function));
  return next != nullptr ? next(arguments...) : nullptr;
}

void* allocate(std::size_t bytes) noexcept { return real.malloc(bytes == 0 ? 1 : bytes); }

/// Rounds up to a multiple of the alignment, as libstdc++ does.
void* allocate_aligned(std::size_t bytes, std::size_t alignment) noexcept {
  const std::size_t least = bytes == 0 ? 1 : bytes;
  const std::size_t rounded = (least + alignment - 1) & ~(alignment - 1);
  return rounded < bytes ? nullptr : real.aligned_alloc(alignment, rounded);
}

/// nullptr if the real operator must do it.
[[gnu::always_inline]] inline void* take(std::size_t bytes, std::size_t alignment,
                                         const void* frame) noexcept {
  const NewMode mode = current_mode();
  if (mode == NewMode::kForward || mode == NewMode::kUnknown)
    return nullptr;
  const auto allocate_block = [=] {
    return alignment == 0 ? allocate(bytes) : allocate_aligned(bytes, alignment);
  };
  if (is_inner_call(frame)) [[unlikely]]
    return allocate_block();
  void* block = call_allocator(frame, allocate_block);
  if (block != nullptr && !passes_between_samples(bytes))
    record_block(block, bytes, frame);
  return block;
}

/// False if the real operator must do it.
[[gnu::always_inline]] inline bool release(void* block, const void* frame) noexcept {
  const NewMode mode = current_mode();
  if (mode == NewMode::kForward || mode == NewMode::kUnknown)
    return false;
  const bool is_inner = is_inner_call(frame);
  if (block != nullptr && !is_no_sample(block))
    is_inner ? forget_inner_block(block) : forget_block(block);
  if (is_inner) [[unlikely]]
    real.free(block);
  else
    call_allocator(frame, [block] { real.free(block); });
  return true;
}

}  // namespace

void prepare_new() noexcept { static_cast<void>(current_mode()); }

bool counts_new_as_malloc() noexcept { return current_mode() == NewMode::kAsMalloc; }

}  // namespace pe::malloctrace

using namespace pe::malloctrace;

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming,misc-definitions-in-headers,bugprone-macro-parentheses)
#define PE_HOOK extern "C" __attribute__((visibility("default")))

#define PE_NEW(name)                                                  \
  PE_HOOK void* name(std::size_t bytes) {                             \
    void* block = take(bytes, 0, __builtin_frame_address(0));         \
    return block != nullptr ? block : forward<void*>(k##name, bytes); \
  }
#define PE_NEW_WITH(name, type)                                              \
  PE_HOOK void* name(std::size_t bytes, type more) {                         \
    void* block = take(bytes, 0, __builtin_frame_address(0));                \
    return block != nullptr ? block : forward_or_fail(k##name, bytes, more); \
  }
#define PE_ALIGNED_NEW(name)                                                     \
  PE_HOOK void* name(std::size_t bytes, std::size_t alignment) {                 \
    void* block = take(bytes, alignment, __builtin_frame_address(0));            \
    return block != nullptr ? block : forward<void*>(k##name, bytes, alignment); \
  }
#define PE_ALIGNED_NEW_WITH(name, type)                                                 \
  PE_HOOK void* name(std::size_t bytes, std::size_t alignment, type more) {             \
    void* block = take(bytes, alignment, __builtin_frame_address(0));                   \
    return block != nullptr ? block : forward_or_fail(k##name, bytes, alignment, more); \
  }
#define PE_DELETE(name)                              \
  PE_HOOK void name(void* block) {                   \
    if (!release(block, __builtin_frame_address(0))) \
      forward<void>(k##name, block);                 \
  }
#define PE_DELETE_WITH(name, type)                   \
  PE_HOOK void name(void* block, type more) {        \
    if (!release(block, __builtin_frame_address(0))) \
      forward<void>(k##name, block, more);           \
  }
#define PE_DELETE_WITH_BOTH(name, type, type2)            \
  PE_HOOK void name(void* block, type more, type2 most) { \
    if (!release(block, __builtin_frame_address(0)))      \
      forward<void>(k##name, block, more, most);          \
  }

PE_NEW(_Znwm)
PE_NEW(_Znam)
PE_NEW_WITH(_ZnwmRKSt9nothrow_t, const void*)
PE_NEW_WITH(_ZnamRKSt9nothrow_t, const void*)
PE_ALIGNED_NEW(_ZnwmSt11align_val_t)
PE_ALIGNED_NEW(_ZnamSt11align_val_t)
PE_ALIGNED_NEW_WITH(_ZnwmSt11align_val_tRKSt9nothrow_t, const void*)
PE_ALIGNED_NEW_WITH(_ZnamSt11align_val_tRKSt9nothrow_t, const void*)
PE_DELETE(_ZdlPv)
PE_DELETE(_ZdaPv)
PE_DELETE_WITH(_ZdlPvm, std::size_t)
PE_DELETE_WITH(_ZdaPvm, std::size_t)
PE_DELETE_WITH(_ZdlPvRKSt9nothrow_t, const void*)
PE_DELETE_WITH(_ZdaPvRKSt9nothrow_t, const void*)
PE_DELETE_WITH(_ZdlPvSt11align_val_t, std::size_t)
PE_DELETE_WITH(_ZdaPvSt11align_val_t, std::size_t)
PE_DELETE_WITH_BOTH(_ZdlPvmSt11align_val_t, std::size_t, std::size_t)
PE_DELETE_WITH_BOTH(_ZdaPvmSt11align_val_t, std::size_t, std::size_t)
PE_DELETE_WITH_BOTH(_ZdlPvSt11align_val_tRKSt9nothrow_t, std::size_t, const void*)
PE_DELETE_WITH_BOTH(_ZdaPvSt11align_val_tRKSt9nothrow_t, std::size_t, const void*)
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming,misc-definitions-in-headers,bugprone-macro-parentheses)
