// SPDX-License-Identifier: MIT
#include "pe-symbolize/debuginfod.h"

#include <dlfcn.h>
#include <elfutils/debuginfod.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <utility>

#include "base/fd.h"

namespace pe::symbolize {
namespace {

constexpr std::size_t kMaxAskedIdBytes = 64;

struct FreeText {
  void operator()(char* text) const noexcept { std::free(text); }  // NOLINT(*-no-malloc)
};

}  // namespace

struct Debuginfod::Library {
  Library() = default;
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  Library(Library&&) = delete;
  Library& operator=(Library&&) = delete;
  ~Library() {
    if (client != nullptr)
      end(client);
    // Not unloaded: the libraries that it brought along (libcurl and its own) may have started
    // threads.
  }

  template <typename Function>
  bool load(Function& into, void* library, const char* name) {
    into = reinterpret_cast<Function>(::dlsym(library, name));
    return into != nullptr;
  }

  bool open() {
    void* library = ::dlopen(DEBUGINFOD_SONAME, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr || !load(begin, library, "debuginfod_begin") ||
        !load(end, library, "debuginfod_end") ||
        !load(find, library, "debuginfod_find_debuginfo") ||
        !load(set_progress, library, "debuginfod_set_progressfn") ||
        !load(set_user_data, library, "debuginfod_set_user_data") ||
        !load(user_data, library, "debuginfod_get_user_data"))
      return false;
    client = begin();
    return client != nullptr;
  }

  void read_progress(Debuginfod& owner) const {
    set_user_data(client, &owner);
    // The callback is a plain function: it gets the client, and finds the owner through the
    // library.
    static decltype(&debuginfod_get_user_data) owner_of = user_data;
    set_progress(client, [](debuginfod_client* of, long bytes, long of_bytes) {
      auto* owner = static_cast<Debuginfod*>(owner_of(of));
      const auto positive = [](long n) { return static_cast<std::uint64_t>(std::max(n, 0L)); };
      return owner->may_go_on(positive(bytes), positive(of_bytes)) ? 0 : 1;
    });
  }

  decltype(&debuginfod_begin) begin = nullptr;
  decltype(&debuginfod_end) end = nullptr;
  decltype(&debuginfod_find_debuginfo) find = nullptr;
  decltype(&debuginfod_set_progressfn) set_progress = nullptr;
  decltype(&debuginfod_set_user_data) set_user_data = nullptr;
  decltype(&debuginfod_get_user_data) user_data = nullptr;
  debuginfod_client* client = nullptr;
};

std::unique_ptr<Debuginfod> Debuginfod::from_environment(DebuginfodSettings settings) {
  const char* urls = std::getenv(DEBUGINFOD_URLS_ENV_VAR);
  if (urls == nullptr || std::string_view(urls).find_first_not_of(' ') == std::string_view::npos)
    return nullptr;
  auto library = std::make_unique<Library>();
  if (!library->open())
    return nullptr;
  return std::unique_ptr<Debuginfod>(new Debuginfod(std::move(library), std::move(settings)));
}

Debuginfod::Debuginfod(std::unique_ptr<Library> library, DebuginfodSettings settings)
    : library_(std::move(library)), settings_(std::move(settings)) {
  library_->read_progress(*this);
  // elfutils 0.192 reports progress only once a server answers.  Only its own timeout ends a
  // request to a silent one: 90 s unless the user has set another (debuginfod-client-config(7)).
  const auto patience = std::chrono::ceil<std::chrono::seconds>(settings_.patience).count();
  ::setenv(DEBUGINFOD_TIMEOUT_ENV_VAR, std::to_string(patience).c_str(), 0);
}

Debuginfod::~Debuginfod() = default;

std::optional<std::string> Debuginfod::debug_file(Bytes build_id) {
  if (has_given_up() || build_id.empty() || build_id.size() > kMaxAskedIdBytes)
    return std::nullopt;
  began_ = last_progress_ = std::chrono::steady_clock::now();
  last_bytes_ = 0;
  is_cancelled_ = false;
  char* found = nullptr;
  const Fd fd(library_->find(library_->client,
                             reinterpret_cast<const unsigned char*>(build_id.data()),
                             static_cast<int>(build_id.size()), &found));
  const std::unique_ptr<char, FreeText> path(found);
  if (fd && path) {
    ++found_;
    failed_in_a_row_ = 0;
    return std::string(path.get());
  }
  // The library returns ENOENT also for requests that we cancelled.
  if (fd.get() == -ENOENT && !is_cancelled_) {
    ++missing_;
    failed_in_a_row_ = 0;
  } else {
    ++failed_;
    ++failed_in_a_row_;
  }
  return std::nullopt;
}

bool Debuginfod::may_go_on(std::uint64_t bytes, std::uint64_t of_bytes) {
  // Until a server answers, the library counts calls instead of bytes (elfutils 0.188).
  constexpr std::uint64_t kMinStep = 1024;
  const auto now = std::chrono::steady_clock::now();
  if (bytes >= last_bytes_ + kMinStep) {
    last_bytes_ = bytes;
    last_progress_ = now;
  }
  if (settings_.progress)
    settings_.progress(last_bytes_, of_bytes);
  is_cancelled_ = now - last_progress_ >= settings_.patience ||
                  now - began_ >= settings_.most_time || last_bytes_ > settings_.most_bytes;
  return !is_cancelled_;
}

}  // namespace pe::symbolize
