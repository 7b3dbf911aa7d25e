// Tests with Debian's debuginfod server on the loopback interface.  It serves the test's own
// programs.
// SPDX-License-Identifier: MIT
#include "pe-symbolize/debuginfod.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <thread>

#include "base/fd.h"
#include "names/module_symbols.h"
#include "objects/debug_file.h"
#include "support/temp_dir.h"
#include "support/test_binary.h"

namespace {

using pe::symbolize::Debuginfod;
using pe::testing::TempDir;
using pe::testing::test_binary;

/// A socket on 127.0.0.1; the kernel chooses its port.
class Socket {
 public:
  Socket() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    BOOST_REQUIRE(::bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), size) == 0);
    BOOST_REQUIRE(::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
    port_ = ntohs(address.sin_port);
  }
  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] int port() const { return port_; }

 private:
  pe::Fd fd_;
  int port_ = 0;
};

/// debuginfod, which serves one folder until the end of the test.
class Server {
 public:
  Server(const std::string& folder, const TempDir& dir) {
    const std::string port = std::to_string(Socket().port());
    const std::string database = dir / "server.sqlite";
    const char* const argv[] = {"debuginfod", "-p", port.c_str(), "-d",           database.c_str(),
                                "-F",         "-t", "1",          folder.c_str(), nullptr};
    posix_spawn_file_actions_t files;
    ::posix_spawn_file_actions_init(&files);
    for (const int fd : {STDOUT_FILENO, STDERR_FILENO})
      ::posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_WRONLY, 0);
    std::string no_urls = "DEBUGINFOD_URLS=";  // otherwise it asks other servers, too
    char* const environment[] = {no_urls.data(), nullptr};
    const int failure = ::posix_spawnp(&pid_, "debuginfod", &files, nullptr,
                                       const_cast<char* const*>(argv), environment);
    ::posix_spawn_file_actions_destroy(&files);
    BOOST_REQUIRE_MESSAGE(failure == 0, "is debuginfod installed?");
    url_ = "http://127.0.0.1:" + port;
  }
  ~Server() {
    ::kill(pid_, SIGTERM);
    ::waitpid(pid_, nullptr, 0);
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  Server(Server&&) = delete;
  Server& operator=(Server&&) = delete;

  [[nodiscard]] const std::string& url() const { return url_; }

 private:
  pid_t pid_ = 0;
  std::string url_;
};

/// A client of `url` with an empty cache.
std::unique_ptr<Debuginfod> client(const std::string& url, const std::string& cache,
                                   pe::symbolize::DebuginfodSettings settings = {}) {
  ::setenv("DEBUGINFOD_URLS", url.c_str(), 1);
  ::setenv("DEBUGINFOD_CACHE_PATH", cache.c_str(), 1);
  ::unsetenv("DEBUGINFOD_TIMEOUT");
  auto made = Debuginfod::from_environment(std::move(settings));
  ::unsetenv("DEBUGINFOD_URLS");
  return made;
}

/// Sets the variable because libdebuginfod reads it at each request.
std::optional<std::string> ask(Debuginfod& debuginfod, const std::string& url, pe::Bytes build_id) {
  ::setenv("DEBUGINFOD_URLS", url.c_str(), 1);
  auto path = debuginfod.debug_file(build_id);
  ::unsetenv("DEBUGINFOD_URLS");
  return path;
}

std::vector<std::byte> build_id_of(const std::string& path) {
  const auto opened = pe::objects::Image::open(path);
  const auto id = std::get<pe::objects::Image>(opened).build_id();
  return {id.begin(), id.end()};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(debuginfod)

BOOST_AUTO_TEST_CASE(without_servers_there_is_no_client) {
  ::unsetenv("DEBUGINFOD_URLS");
  BOOST_TEST(Debuginfod::from_environment() == nullptr);
  const TempDir dir;
  BOOST_TEST(client("", dir / "cache") == nullptr);
  BOOST_TEST(client("  ", dir / "cache") == nullptr);
}

BOOST_AUTO_TEST_CASE(a_server_gives_out_debug_files_by_build_id) {
  const TempDir dir;
  const Server server(test_binary("debug_files/root"), dir);
  const std::string program = test_binary("debug_files/unlinked");
  std::optional<std::string> path;
  std::unique_ptr<Debuginfod> asked;
  for (int i = 0; !path && i < 300; ++i) {  // until the server listens and has scanned the folder
    asked = client(server.url(), dir / ("cache" + std::to_string(i)));
    path = ask(*asked, server.url(), build_id_of(program));
    if (!path)
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  BOOST_REQUIRE(path);
  BOOST_TEST(asked->found() == 1U);

  const auto id_of_another = build_id_of(test_binary("debug_files/whole5"));
  BOOST_TEST(!ask(*asked, server.url(), id_of_another));
  BOOST_TEST(asked->missing() == 1U);
  BOOST_TEST(asked->failed() == 0U);

  pe::objects::DebugFinder finder({.roots = {}, .sysroot = {}, .fetch = [&](pe::Bytes build_id) {
                                     return ask(*asked, server.url(), build_id);
                                   }});
  pe::names::ModuleSymbols module(pe::objects::Image::open(program), program, finder);
  bool is_named = false;
  const auto* text = module.image()->section(".text");
  for (std::uint64_t at = 0; at < text->bytes; at += 16) {
    const auto symbol = module.find_svma(text->svma + at);
    is_named = is_named || (symbol && symbol->name == "(anonymous namespace)::only_in_symtab");
  }
  BOOST_TEST(is_named);
}

BOOST_AUTO_TEST_CASE(a_server_that_sends_without_end_is_given_up_and_progress_is_reported) {
  const Socket socket;
  BOOST_REQUIRE(::listen(socket.fd(), 1) == 0);
  std::thread server([&] {
    const pe::Fd peer(::accept(socket.fd(), nullptr, nullptr));
    const std::string head = "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n\r\n";
    const std::string block(64UL * 1024, 'x');
    for (ssize_t sent = ::send(peer.get(), head.data(), head.size(), MSG_NOSIGNAL); sent > 0;) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      sent = ::send(peer.get(), block.data(), block.size(), MSG_NOSIGNAL);
    }
  });
  const TempDir dir;
  const std::string url = "http://127.0.0.1:" + std::to_string(socket.port());
  std::uint64_t reported = 0;
  const auto asked =
      client(url, dir / "cache",
             {.most_bytes = 100'000,
              .progress = [&](std::uint64_t bytes, std::uint64_t) { reported = bytes; }});
  BOOST_TEST(!ask(*asked, url, std::vector<std::byte>(20)));
  server.join();  // its send(2) fails when the client has closed the connection
  BOOST_TEST(reported > 100'000U);
  BOOST_TEST(asked->failed() == 1U);
}

BOOST_AUTO_TEST_CASE(servers_that_cannot_be_reached_are_given_up) {
  const TempDir dir;
  const std::string url = "http://127.0.0.1:" + std::to_string(Socket().port());
  const auto asked = client(url, dir / "cache");
  for (int i = 0; i < 4; ++i) {
    const std::vector<std::byte> id(20, static_cast<std::byte>(i));
    BOOST_TEST(!ask(*asked, url, id));
  }
  BOOST_TEST(asked->has_given_up());
  BOOST_TEST(asked->failed() == Debuginfod::kMaxFailures);
}

BOOST_AUTO_TEST_CASE(a_silent_server_is_given_up) {
  const TempDir dir;
  const Socket silent;
  // connections wait for accept(2), which nobody calls
  BOOST_REQUIRE(::listen(silent.fd(), 8) == 0);
  const std::string url = "http://127.0.0.1:" + std::to_string(silent.port());
  const auto asked =
      client(url, dir / "cache", {.patience = std::chrono::milliseconds(100), .progress = {}});
  BOOST_TEST(!ask(*asked, url, std::vector<std::byte>(20)));
  BOOST_TEST(asked->failed() == 1U);
}

BOOST_AUTO_TEST_SUITE_END()
