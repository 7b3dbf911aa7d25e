// SPDX-License-Identifier: MIT
//
// Sources: the System V gABI, chapter 5; dl_iterate_phdr(3).
#include "malloctrace/preload/hooks/redirect.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <span>
#include <string_view>

#include "malloctrace/preload/hooks/hooks_new.h"
#include "malloctrace/preload/memory/spin_lock.h"
#include "malloctrace/preload/tracer.h"
#include "recording/inprocess/runtime/real_functions.h"

namespace pe::malloctrace {
namespace {

/// How often to look at new objects: the linker may just be about to write the same places.
constexpr unsigned kLooks = 5;

/// The tables of a loaded object that relocations need.  All addresses are avma.
struct DynamicTables {
  const ElfW(Sym) * symbols;
  const char* names;
  std::span<const ElfW(Rela)> data, calls;
};

struct Hooked {
  std::string_view name;
  std::uint64_t hook, real;
  std::uint64_t stub;  ///< of a program at a fixed address, see is_stub(); 0: none
};

struct Hooks {
  static constexpr std::size_t kPlaces = 256;  ///< of a hash table, four times the hooks

  std::array<Hooked, kPlaces> places;
  bool are_known;
  SpinLock lock;
  unsigned long long loaded_objects;  ///< the linker's count when we last looked
  unsigned looks_left;                ///< see redirect_new_objects()
};
constinit Hooks
    hooks{};  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables): one a process

std::size_t place_of(std::string_view name) noexcept {
  std::uint32_t hash = 5381;
  for (const char c : name)
    hash = hash * 33 + static_cast<unsigned char>(c);
  return hash % Hooks::kPlaces;
}

const Hooked* find_hook(std::string_view name) noexcept {
  for (std::size_t i = place_of(name); !hooks.places[i].name.empty(); i = (i + 1) % Hooks::kPlaces)
    if (hooks.places[i].name == name)
      return &hooks.places[i];
  return nullptr;
}

void add_hook(const Hooked& hook) noexcept {
  std::size_t i = place_of(hook.name);
  while (!hooks.places[i].name.empty())
    i = (i + 1) % Hooks::kPlaces;
  hooks.places[i] = hook;
}

const ElfW(Phdr) * header_of(const dl_phdr_info& object, ElfW(Word) type) noexcept {
  const std::span headers(object.dlpi_phdr, object.dlpi_phnum);
  const auto found = std::find_if(headers.begin(), headers.end(),
                                  [type](const ElfW(Phdr) & h) { return h.p_type == type; });
  return found == headers.end() ? nullptr : &*found;
}

/// The tables of an object; without symbols if it has none.
DynamicTables tables_of(const dl_phdr_info& object) noexcept {
  DynamicTables tables{};
  const auto* dynamic = header_of(object, PT_DYNAMIC);
  if (dynamic == nullptr)
    return tables;
  // The linker has replaced offsets by addresses, but not in the kernel's vdso.
  const auto address = [&object](const ElfW(Dyn) & entry) {
    const std::uint64_t value = entry.d_un.d_ptr;
    return value < object.dlpi_addr ? value + object.dlpi_addr : value;
  };
  std::uint64_t data = 0, calls = 0, data_bytes = 0, calls_bytes = 0;
  const auto* entry = reinterpret_cast<const ElfW(Dyn)*>(object.dlpi_addr + dynamic->p_vaddr);
  for (; entry->d_tag != DT_NULL; ++entry) {
    switch (entry->d_tag) {
      case DT_SYMTAB:
        tables.symbols = reinterpret_cast<const ElfW(Sym)*>(address(*entry));
        break;
      case DT_STRTAB:
        tables.names = reinterpret_cast<const char*>(address(*entry));
        break;
      case DT_RELA:
        data = address(*entry);
        break;
      case DT_RELASZ:
        data_bytes = entry->d_un.d_val;
        break;
      case DT_JMPREL:
        calls = address(*entry);
        break;
      case DT_PLTRELSZ:
        calls_bytes = entry->d_un.d_val;
        break;
      default:
        break;
    }
  }
  const auto relocations = [](std::uint64_t at, std::uint64_t bytes) {
    return std::span(reinterpret_cast<const ElfW(Rela)*>(at), bytes / sizeof(ElfW(Rela)));
  };
  if (tables.symbols == nullptr || tables.names == nullptr)
    return {};
  tables.data = relocations(data, data == 0 ? 0 : data_bytes);
  tables.calls = relocations(calls, calls == 0 ? 0 : calls_bytes);
  return tables;
}

bool covers(const dl_phdr_info& object, const ElfW(Phdr) & header, std::uint64_t avma) noexcept {
  return avma - object.dlpi_addr - header.p_vaddr < header.p_memsz;
}

bool is_in(const dl_phdr_info& object, std::uint64_t avma) noexcept {
  const std::span headers(object.dlpi_phdr, object.dlpi_phnum);
  return std::any_of(headers.begin(), headers.end(), [&](const ElfW(Phdr) & header) {
    return header.p_type == PT_LOAD && covers(object, header, avma);
  });
}

bool is_writable(const dl_phdr_info& object, std::uint64_t avma) noexcept {
  const std::span headers(object.dlpi_phdr, object.dlpi_phnum);
  return std::any_of(headers.begin(), headers.end(), [&](const ElfW(Phdr) & header) {
    return header.p_type == PT_LOAD && (header.p_flags & PF_W) != 0 && covers(object, header, avma);
  });
}

/// Writes to a place, which the linker may have made read-only (RELRO).
void write_place(const dl_phdr_info& object, std::uint64_t* place, std::uint64_t value) noexcept {
  const auto avma = reinterpret_cast<std::uint64_t>(place);
  const auto* relro = header_of(object, PT_GNU_RELRO);
  if (relro == nullptr || !covers(object, *relro, avma))
    return store_relaxed(*place, value);
  constexpr std::uint64_t kPage = 4096;
  const std::uint64_t page = avma & ~(kPage - 1);
  // The relocations of the last page of RELRO may be writable: then it stays so.
  const std::uint64_t end = (object.dlpi_addr + relro->p_vaddr + relro->p_memsz) & ~(kPage - 1);
  if (page >= end)
    return store_relaxed(*place, value);
  if (::syscall(SYS_mprotect, page, kPage, PROT_READ | PROT_WRITE) != 0)
    return;
  store_relaxed(*place, value);
  ::syscall(SYS_mprotect, page, kPage, PROT_READ);
}

/// The place of a relocation that names a hook.
struct BoundPlace {
  std::uint64_t* word;
  const Hooked& hook;
  bool is_call;  ///< it is bound at the first call, and not to the object itself
};

template <typename OnPlace>
void for_each_place(const dl_phdr_info& object, OnPlace on_place) noexcept {
  const DynamicTables tables = tables_of(object);
  const auto visit = [&](const ElfW(Rela) & relocation, bool is_call) {
    const auto type = ELF64_R_TYPE(relocation.r_info);
    if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT && type != R_X86_64_64)
      return;
    const ElfW(Sym)& symbol = tables.symbols[ELF64_R_SYM(relocation.r_info)];
    if (relocation.r_addend != 0 || symbol.st_name == 0)
      return;
    const Hooked* hook = find_hook(tables.names + symbol.st_name);
    const std::uint64_t place = object.dlpi_addr + relocation.r_offset;
    if (hook == nullptr || place % sizeof(std::uint64_t) != 0 || !is_writable(object, place))
      return;
    on_place(BoundPlace{reinterpret_cast<std::uint64_t*>(place), *hook,
                        is_call && symbol.st_shndx == SHN_UNDEF});
  };
  for (const ElfW(Rela) & relocation : tables.data)
    visit(relocation, false);
  for (const ElfW(Rela) & relocation : tables.calls)
    visit(relocation, true);
}

/// A call that is not bound yet leads into its own object, where code asks the linker.
bool is_unbound(const dl_phdr_info& object, const BoundPlace& place) noexcept {
  return place.is_call && is_in(object, load_relaxed(*place.word));
}

bool is_elsewhere(const dl_phdr_info& object, const BoundPlace& place) noexcept {
  const std::uint64_t now = load_relaxed(*place.word);
  return now != place.hook.real && now != place.hook.hook && now != place.hook.stub &&
         !is_unbound(object, place);
}

/// The calls of an object that has another allocator, and that are not bound, may be bound to that.
void redirect(const dl_phdr_info& object) noexcept {
  bool has_others = false;
  for_each_place(object, [&](const BoundPlace& place) {
    has_others = has_others || is_elsewhere(object, place);
  });
  for_each_place(object, [&](const BoundPlace& place) {
    if (load_relaxed(*place.word) == place.hook.real || (!has_others && is_unbound(object, place)))
      write_place(object, place.word, place.hook.hook);
  });
}

void restore(const dl_phdr_info& object) noexcept {
  for_each_place(object, [&object](const BoundPlace& place) {
    if (load_relaxed(*place.word) == place.hook.hook)
      write_place(object, place.word, place.hook.real);
  });
}

/// The address of this library in memory.
std::uint64_t own_base() noexcept {
  Dl_info own{};
  return ::dladdr(&hooks, &own) != 0 ? reinterpret_cast<std::uint64_t>(own.dli_fbase) : 0;
}

/// Whether a symbol of ours replaces the program's.
bool is_hook(const ElfW(Sym) & symbol, std::string_view name) noexcept {
  if (symbol.st_shndx == SHN_UNDEF || ELF64_ST_TYPE(symbol.st_info) != STT_FUNC)
    return false;
  if (name.starts_with("_Zn") || name.starts_with("_Zd"))
    return counts_new_as_malloc();
  return !name.starts_with("exec") && name != "fexecve" && !name.starts_with("posix_spawn") &&
         !name.starts_with("malloctrace_");
}

/// The program's function; 0 if there is none.  `wants_stub`: the stub instead.
std::uint64_t find_real(const char* name, void* from, bool wants_stub) noexcept {
  void* found = ::dlsym(from, name);
  return found != nullptr && is_stub(found) == wants_stub ? reinterpret_cast<std::uint64_t>(found)
                                                          : 0;
}

/// The number of symbols, which are before their names in our library, as in all that GNU ld makes.
std::size_t symbol_count(const DynamicTables& tables) noexcept {
  const auto symbols = reinterpret_cast<std::uint64_t>(tables.symbols);
  const auto names = reinterpret_cast<std::uint64_t>(tables.names);
  return names > symbols ? (names - symbols) / sizeof(ElfW(Sym)) : 0;
}

void learn_hooks(const dl_phdr_info& own) noexcept {
  const Uncounted uncounted;  // dlsym(3) allocates messages
  const DynamicTables tables = tables_of(own);
  for (const ElfW(Sym) & symbol : std::span(tables.symbols, symbol_count(tables))) {
    const char* name = tables.names + symbol.st_name;
    if (!is_hook(symbol, name))
      continue;
    if (const std::uint64_t real = find_real(name, inprocess::search_from, false); real != 0)
      add_hook({name, own.dlpi_addr + symbol.st_value, real, find_real(name, RTLD_DEFAULT, true)});
  }
  ::dlerror();
  hooks.are_known = true;
}

/// Calls `function(object)` for each object until it returns false.
template <typename Function>
void for_each_object(Function function) noexcept {
  ::dl_iterate_phdr([](dl_phdr_info* object, std::size_t,
                       void* data) { return (*static_cast<Function*>(data))(*object) ? 0 : 1; },
                    &function);
}

void change_others(void (*change)(const dl_phdr_info&)) noexcept {
  const std::uint64_t own = own_base();
  for_each_object([&](const dl_phdr_info& object) {
    if (object.dlpi_addr != own)
      change(object);
    hooks.loaded_objects = object.dlpi_adds;
    return true;
  });
}

}  // namespace

void redirect_objects() noexcept {
  const std::lock_guard guard(hooks.lock);
  if (!hooks.are_known) {
    // Names are looked up afterwards: the linker's locks have an order.
    dl_phdr_info own{};
    for_each_object([&own, base = own_base()](const dl_phdr_info& object) {
      own = object;
      return object.dlpi_addr != base;
    });
    learn_hooks(own);
  }
  hooks.looks_left = kLooks;
  change_others(redirect);
}

void* find_first_library() noexcept {
  const char* name = nullptr;
  for_each_object([&name](const dl_phdr_info& object) {
    name = object.dlpi_name;
    return name == nullptr || name[0] != '/';  // the program has none, and the vdso is no file
  });
  return name == nullptr ? nullptr : ::dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
}

void redirect_new_objects() noexcept {
  const std::unique_lock guard(hooks.lock, std::try_to_lock);
  if (!guard)
    return;
  for_each_object([](const dl_phdr_info& object) {
    if (object.dlpi_adds != hooks.loaded_objects)
      hooks.looks_left = kLooks;
    return false;
  });
  if (hooks.looks_left == 0)
    return;
  --hooks.looks_left;
  change_others(redirect);
}

void restore_objects() noexcept {
  const std::lock_guard guard(hooks.lock);
  change_others(restore);
}

}  // namespace pe::malloctrace
