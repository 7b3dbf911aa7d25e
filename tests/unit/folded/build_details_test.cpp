// SPDX-License-Identifier: MIT
#include "folded/build_details.h"
#include "support/costly.h"

#include <boost/test/unit_test.hpp>
#include <string>
#include <utility>

using pe::folded::without_build_details;
using pe::folded::without_hex_numbers;

BOOST_AUTO_TEST_SUITE(build_details)

BOOST_AUTO_TEST_CASE(endings_that_compilers_add_are_cut) {
  for (const char* name : {"f.cold",
                           "f.isra.0",
                           "f.constprop.12",
                           "f.part.3.isra.0.cold",
                           "f.lto_priv.0.cold.7",
                           "f.llvm.1234567890",
                           "f.__uniq.123.llvm.5",
                           "f.localalias",
                           "f [clone .isra.0]",
                           "f [clone .part.0] [clone .cold]",
                           "f::h0123456789abcdef",
                           "f.cold.0",
                           "f.__part.3",
                           "f.warm",
                           "f.warm.1",
                           "f.part.1",
                           "f.specialized.2",
                           "f.abi0",
                           "f (.llvm.77)",
                           "f (.isra.0) (.cold)",
                           "f::h0123456789abcdef.llvm.12"})
    BOOST_TEST(without_build_details(name) == "f");
  BOOST_TEST(without_build_details("ns::f(int).cold") == "ns::f(int)");
}

BOOST_AUTO_TEST_CASE(names_that_only_look_a_little_like_that_stay) {
  for (const char* name : {".cold",
                           "f.colder",
                           "libc.so.6",
                           "f.isra.x",
                           "f.",
                           "f.0",
                           "f::hello",
                           "f::h0123",
                           "[clone .x]",
                           "main.go",
                           "a",
                           "",
                           "_[k]",
                           "v1.2.3",
                           "$",
                           "Outer$1Local.run",
                           "func1",
                           "Foo.func1",
                           "com.x.Foo.func1_[j]",
                           "com.x.Foo.func1_[s]",
                           "a.b.func1(int)",
                           "f (file.py)",
                           "Proxy12.get",
                           "$Proxyless.get",
                           "Accessor12",
                           "operator new(unsigned long)",
                           "f[12]",
                           "F[go.shape.int]",
                           "block (2 levels) in f",
                           "julia_f",
                           "#1",
                           "C#2",
                           "f::{lambda}",
                           "std::vector<int>::push_back",
                           "lambda_12",
                           "sha512_block",
                           "f(int, long)"})
    BOOST_TEST(without_build_details(name) == name);
}

BOOST_AUTO_TEST_CASE(numbers_of_javas_classes_are_cut) {
  const std::pair<const char*, const char*> kNames[] = {
      {"L$$Lambda$1.applyAsDouble_[j]", "L$$Lambda.applyAsDouble_[j]"},
      {"L$$Lambda$469/0x00007f0a1c0d2000.f", "L$$Lambda.f"},
      {"L$$Lambda/0x000071c0dc003000.f", "L$$Lambda.f"},
      {"L$$Lambda$1/1078694789.f", "L$$Lambda.f"},
      {"L$$Lambda.0x00007f0a1c0d2000.f", "L$$Lambda.f"},
      {"L.lambda$main$3_[i]", "L.lambda$main$_[i]"},
      {"MainKt.main$lambda-2", "MainKt.main$lambda"},
      {"com.sun.proxy.$Proxy12.get", "com.sun.proxy.$Proxy.get"},
      {"jdk.proxy2.$Proxy12.get", "jdk.proxy.$Proxy.get"},
      {"jdk/proxy2/$Proxy12.get", "jdk/proxy/$Proxy.get"},
      {"a.GeneratedMethodAccessor12.invoke", "a.GeneratedMethodAccessor.invoke"},
      {"a.GeneratedConstructorAccessor3.newInstance", "a.GeneratedConstructorAccessor.newInstance"},
      {"GeneratedSerializationConstructorAccessor1.f",
       "GeneratedSerializationConstructorAccessor.f"},
      {"java.lang.invoke.LambdaForm$MH/0x000071c0dc003000.invoke",
       "java.lang.invoke.LambdaForm$MH.invoke"},
      {"LambdaForm$DMH/1234567.invokeStatic_L_V", "LambdaForm$DMH.invokeStatic_L_V"},
      {"LambdaForm$BMH$12.f", "LambdaForm$BMH.f"},
      {"com.x.Hidden/0x0000000800c03000.run", "com.x.Hidden.run"},
      {"com.x.Hidden+0x0000000800c03000.run", "com.x.Hidden.run"},
      {"a.B$$EnhancerBySpringCGLIB$$1a2b3c4d.f", "a.B$$EnhancerBySpringCGLIB$$.f"},
      {"a.B$HibernateProxy$x8Fj2kLm.f", "a.B$HibernateProxy$.f"},
      {"Outer$1.run", "Outer$.run"},  // not Outer.run
      {"Outer.access$000", "Outer.access$"},
      {"S$.$anonfun$main$1", "S$.$anonfun$main$"},
      {"user$eval12$fn__345.invoke", "user$eval$fn.invoke"},
      {"G$_run_closure2.doCall", "G$_run_closure.doCall"},
  };
  for (const auto& [name, expected] : kNames)
    BOOST_TEST(without_build_details(name) == expected);
}

BOOST_AUTO_TEST_CASE(numbers_of_functions_without_a_name_are_cut) {
  const std::pair<const char*, const char*> kNames[] = {
      {"main::{lambda(int)#2}::operator()", "main::{lambda(int)}::operator()"},
      {"f<main::{lambda()#3}, g::{unnamed type#1}>", "f<main::{lambda()}, g::{unnamed type}>"},
      {"main::'lambda0'(int)::operator()", "main::'lambda'(int)::operator()"},
      {"`f'::<lambda_0a1b2c>::operator()", "`f'::<lambda>::operator()"},
      {"app[1a2b3c4d5e6f7a8b]::run::{closure#0}::{closure#1}", "app::run::{closure}::{closure}"},
      {"main.main.func1", "main.main.func"},
      {"main.main.func1.2", "main.main.func"},
      {"main.(*Server).run.func2.1.gowrap3", "main.(*Server).run.func.gowrap"},
      {"github.com/x/y.glob..func12", "github.com/x/y.glob..func"},
      {"main.F[...].func1-range2", "main.F[...].func-range"},
      {"main.f-range1", "main.f-range"},
      {"main.init.0", "main.init"},
      {"closure #2 in closure #1 in main()", "closure in closure in main()"},
      {"__main_block_invoke_3", "__main_block_invoke"},
      {"A.<Main>b__0_1", "A.<Main>b__"},
      {"A/<>c__DisplayClass3_0.<Foo>b__0", "A/<>c__DisplayClass.<Foo>b__"},
      {"A.<Foo>g__Local|3_0", "A.<Foo>g__Local|"},
      {"void A::B()[OptimizedTier1]", "void A::B()"},
      {"LazyCompile:*f a.js:1", "LazyCompile:f a.js:1"},
      {"d.main.__lambda4", "d.main.__lambda"},
      {"fmt.format__anon_4321", "fmt.format__anon"},
      {"camlMain__fun_123", "camlMain__fun"},
      {"julia_f_123", "julia_f"},
      {"main._omp_fn.0", "main._omp_fn"},
      {"main.omp_outlined.12", "main.omp_outlined"},
      {"bpf_prog_1a2b3c4d5e6f7a8b_name_[k]", "bpf_prog_name_[k]"},
      {"bpf_trampoline_6442526459_[k]", "bpf_trampoline_[k]"},
  };
  for (const auto& [name, expected] : kNames)
    BOOST_TEST(without_build_details(name) == expected);
}

BOOST_AUTO_TEST_CASE(addresses_become_dots_and_marks_stay) {
  BOOST_TEST(without_build_details("libx.so+0x1a2B") == "libx.so+0x...");
  BOOST_TEST(without_build_details("0xffffffff81000000_[k]") == "0x..._[k]");
  BOOST_TEST(without_build_details("do_sys_open.isra.0_[k]") == "do_sys_open_[k]");
  BOOST_TEST(without_hex_numbers("a;0x12+0xg;00x1;0X1;0x") == "a;0x...+0xg;00x...;0X1;0x");
}

BOOST_AUTO_TEST_CASE(no_name_becomes_empty) {
  for (const char* name : {"/0x0123456789abcdef", "::h0123456789abcdef", "[PreJIT]", "$1"})
    BOOST_TEST(!without_build_details(name).empty());
}

BOOST_AUTO_TEST_CASE(hostile_names_take_linear_time, *pe::tests::costly()) {
  for (const char* part : {".cold", "$1", " [clone .x]", " (.x", ".func1", "<>b__1", "{#1}", "#1",
                           "'lambda1'", "-fun-1-", "(*a).", "/0x12345678", "::h0123456789abcdef"}) {
    std::string name = "f";
    for (int i = 0; i < 100'000; ++i)
      name += part;
    BOOST_TEST(without_build_details(name).size() <= name.size());
  }
}

BOOST_AUTO_TEST_SUITE_END()
