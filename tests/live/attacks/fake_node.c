// Looks like Node with V8 11.3 to a recorder.  Its stack has many functions of JavaScript, each in
// a script of its own, and far back in it.  All scripts have the same text, which only has ends of
// lines.
//
// usage: node FUNCTIONS TEXT_BYTES PROCESSES
//
// Source of the layout: languages/node/binary.cpp.
// SPDX-License-Identifier: MIT
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define NUMBER(name, value)      \
  extern const int v8dbg_##name; \
  const int v8dbg_##name = value
enum { kFunction = 2000, kShared = 300, kBytecodes, kCode, kScope, kScript, kData, kStream = 307 };
NUMBER(type_JSFunction__JS_FUNCTION_TYPE, kFunction);
NUMBER(type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE, kShared);
NUMBER(type_BytecodeArray__BYTECODE_ARRAY_TYPE, kBytecodes);
NUMBER(type_Code__CODE_TYPE, kCode);
NUMBER(type_ScopeInfo__SCOPE_INFO_TYPE, kScope);
NUMBER(type_Script__SCRIPT_TYPE, kScript);
NUMBER(type_InterpreterData__INTERPRETER_DATA_TYPE, kData);
NUMBER(type_InstructionStream__INSTRUCTION_STREAM_TYPE, kStream);
NUMBER(class_Map__instance_type__uint16_t, 12);
NUMBER(class_JSFunction__shared__SharedFunctionInfo, 32);
NUMBER(class_SharedFunctionInfo__name_or_scope_info__Object, 24);
NUMBER(class_SharedFunctionInfo__script__Tagged_HeapObject_, 40);
NUMBER(class_Script__source__Object, 8);
NUMBER(class_Script__name__Object, 16);
NUMBER(class_BytecodeArray__data__uintptr_t, 56);
NUMBER(CodeKindBaseline, 10);
extern const int _ZN2v88internal7Version6major_E, _ZN2v88internal7Version6minor_E;
const int _ZN2v88internal7Version6major_E = 11, _ZN2v88internal7Version6minor_E = 3;

// A bytecode handler that never ends, on the stack of its argument, and the interpreter's builtin
// to which that stack's frames return.
void Builtins_LoopHandler(void* frame);
void Builtins_InterpreterEntryTrampoline(void);
__asm__(
    ".text\n"
    ".globl Builtins_LoopHandler, Builtins_InterpreterEntryTrampoline\n"
    ".type Builtins_LoopHandler, @function\n"
    ".type Builtins_InterpreterEntryTrampoline, @function\n"
    "Builtins_InterpreterEntryTrampoline:\n"
    ".cfi_startproc\n"
    ".cfi_def_cfa %rbp, 16\n"
    ".cfi_offset %rbp, -16\n"
    "nop\nnop\nnop\nnop\nud2\n"
    ".cfi_endproc\n"
    ".size Builtins_InterpreterEntryTrampoline, . - Builtins_InterpreterEntryTrampoline\n"
    "Builtins_LoopHandler:\n"
    ".cfi_startproc\n"
    ".cfi_def_cfa %rbp, 16\n"
    ".cfi_offset %rbp, -16\n"
    "mov %rdi, %rbp\n"
    "lea -64(%rdi), %rsp\n"
    "xor %r9d, %r9d\n"
    "1: inc %rax\n"
    "jmp 1b\n"
    ".cfi_endproc\n"
    ".size Builtins_LoopHandler, . - Builtins_LoopHandler\n");

enum { kObject = 128 };
enum { kFrameWords = 8 };
static uint64_t maps[4096];

static uint64_t* word_at(uint64_t object, size_t offset) {
  return (uint64_t*)(object - 1 + offset);
}

static uint64_t new_object(size_t bytes, int type) {
  if (maps[type] == 0 && type != 0) {
    maps[type] = new_object(kObject, 0);
    *(uint16_t*)(maps[type] - 1 + 12) = (uint16_t)type;
  }
  char* at = NULL;
  if (posix_memalign((void**)&at, 64, bytes) != 0)
    exit(1);
  memset(at, 0, bytes < kObject ? bytes : kObject);
  const uint64_t object = (uint64_t)at + 1;
  *word_at(object, 0) = maps[type];
  return object;
}

static uint64_t new_text(size_t length, int byte) {
  const uint64_t text = new_object(kObject + length, 8);  // a sequence of bytes
  *(uint32_t*)(text - 1 + 12) = (uint32_t)length;
  memset((char*)text - 1 + 16, byte, length);
  return text;
}

static uint64_t small(uint64_t value) { return value << 32; }

static uint64_t new_function(uint64_t source, uint64_t name, uint32_t start, uint64_t* bytecodes) {
  const uint64_t script = new_object(kObject, kScript);
  *word_at(script, 8) = source;
  *word_at(script, 16) = name;
  *bytecodes = new_object(kObject, kBytecodes);
  const uint64_t scope = new_object(kObject, kScope);
  *word_at(scope, 8) = small(2 | 1 << 12);  // a function's, which has a name
  *word_at(scope, 32) = name;
  *word_at(scope, 48) = small(start);
  const uint64_t shared = new_object(kObject, kShared);
  *word_at(shared, 8) = *bytecodes;
  *word_at(shared, 24) = scope;
  *word_at(shared, 40) = script;
  const uint64_t function = new_object(kObject, kFunction);
  *word_at(function, 32) = shared;
  return function;
}

int main(int argc, char** argv) {
  if (argc < 4)
    return 2;
  alarm(60);
  const size_t count = strtoul(argv[1], NULL, 10), length = strtoul(argv[2], NULL, 10);
  const uint64_t source = new_text(length, '\n'), name = new_text(9, 'n');
  uint64_t* stack = calloc(count + 2, kFrameWords * sizeof *stack);
  for (size_t i = 0; i < count; ++i) {
    uint64_t* frame = stack + i * kFrameWords + kFrameWords;
    uint64_t bytecodes = 0;
    frame[-1] = name;  // the context
    frame[-2] = new_function(source, name, (uint32_t)length - 1, &bytecodes);
    frame[-4] = bytecodes;
    frame[-5] = small(56);
    frame[0] = i + 1 < count ? (uint64_t)(frame + kFrameWords) : 0;
    frame[1] = i + 1 < count ? (uint64_t)&Builtins_InterpreterEntryTrampoline + 3 : 0;
  }
  for (long i = 1; i < strtol(argv[3], NULL, 10); ++i)
    if (fork() == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      alarm(60);
      break;
    }
  Builtins_LoopHandler(stack + kFrameWords);
}
