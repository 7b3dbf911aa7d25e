// Makes two functions at run time, without frame pointers, and writes a jitdump that names them.
//
// jit_made FOLDER [WORD...]: prints its process number, then runs the functions until it is killed.
//   data      maps the dump as data, not as code
//   cut       ends the dump within the record of the inner function, as the end of a buffer does
//   unwind    writes call frame information before each function
// SPDX-License-Identifier: MIT
#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { kOuterAt = 0, kInnerAt = 64, kRoom = 4096 };

// sub $0x28,%rsp; call inner; add $0x28,%rsp; ret
static const unsigned char kOuter[] = {0x48, 0x83, 0xec, 0x28, 0xe8, 0x37, 0,
                                       0,    0,    0x48, 0x83, 0xc4, 0x28, 0xc3};
// sub $0x48,%rsp; mov $10000000,%ecx; 1: dec %ecx; jnz 1b; add $0x48,%rsp; ret
static const unsigned char kInner[] = {0x48, 0x83, 0xec, 0x48, 0xb9, 0x80, 0x96, 0x98, 0,
                                       0xff, 0xc9, 0x75, 0xfc, 0x48, 0x83, 0xc4, 0x48, 0xc3};

struct record {
  uint32_t type, size;
  uint64_t time_ns;
};

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void put(FILE* file, const void* bytes, size_t size) {
  if (fwrite(bytes, 1, size, file) != size)
    abort();
}

static void put_header(FILE* file) {
  const struct {
    uint32_t magic, version, size, machine, pad, pid;
    uint64_t time_ns, flags;
  } header = {0x4a695444, 1, sizeof header, EM_X86_64, 0, (uint32_t)getpid(), now_ns(), 0};
  put(file, &header, sizeof header);
}

// Writes a CIE and an FDE.  The CFA is rsp+8, and rsp+8+frame after the first instruction.  The
// header follows, with its table of one entry, as perf's specification requires.
static void put_unwinding(FILE* file, uint32_t code_bytes, uint8_t frame) {
  // perf's specification defines the distance of the code: its size is rounded up to 8, and it ends
  // where .eh_frame starts.
  const uint32_t code_room = (code_bytes + 7) / 8 * 8;
  uint8_t cfi[64] = {0};
  const uint8_t cie[] = {20, 0,    0,  0, 0,    0,    0, 0, 1,    'z', 'R', 0,
                         1,  0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1,   0,   0};
  memcpy(cfi, cie, sizeof cie);
  uint8_t* fde = cfi + sizeof cie;
  const uint32_t fde_size = 20, cie_distance = sizeof cie + 4;
  const int32_t start = -(int32_t)(code_room + sizeof cie + 8);
  memcpy(fde, &fde_size, 4);
  memcpy(fde + 4, &cie_distance, 4);
  memcpy(fde + 8, &start, 4);
  memcpy(fde + 12, &code_bytes, 4);
  // No augmentation data; DW_CFA_advance_loc 4, DW_CFA_def_cfa_offset; 8 again before the return.
  const uint8_t program[] = {
      0, 0x44, 0x0e, (uint8_t)(8 + frame), (uint8_t)(0x40 | (code_bytes - 5)), 0x0e, 8, 0};
  memcpy(fde + 16, program, sizeof program);
  const size_t cfi_bytes = sizeof cie + 24 + 4;  // including the terminator
  const int32_t to_cfi = -(int32_t)cfi_bytes - 4;
  struct __attribute__((packed)) {
    uint8_t version, frame_encoding, count_encoding, table_encoding;
    int32_t to_cfi;
    uint32_t count;
    int32_t code, fde;
  } header = {1,
              0x1b,
              0x03,
              0x3b,
              to_cfi,
              1,
              -(int32_t)(cfi_bytes + code_room),
              -(int32_t)cfi_bytes + (int32_t)sizeof cie};
  const uint64_t sizes[] = {cfi_bytes + sizeof header, sizeof header, cfi_bytes + sizeof header};
  const uint32_t pad = (uint32_t)((8 - sizes[0] % 8) % 8);
  const struct record record = {4, (uint32_t)(sizeof record + sizeof sizes + sizes[0] + pad),
                                now_ns()};
  put(file, &record, sizeof record);
  put(file, sizes, sizeof sizes);
  put(file, cfi, cfi_bytes);
  put(file, &header, sizeof header);
  put(file, "\0\0\0\0\0\0\0", pad);
}

static void put_function(FILE* file, const char* name, const unsigned char* code, size_t bytes) {
  const uint64_t address = (uint64_t)(uintptr_t)code;
  const struct {
    struct record record;
    uint32_t pid, tid;
    uint64_t vma, code, code_bytes, index;
  } load = {{0, (uint32_t)(sizeof load + strlen(name) + 1 + bytes), now_ns()},
            (uint32_t)getpid(),
            (uint32_t)syscall(SYS_gettid),
            address,
            address,
            bytes,
            1};
  put(file, &load, sizeof load);
  put(file, name, strlen(name) + 1);
  put(file, code, bytes);
}

int main(int argc, char** argv) {
  int is_data = 0, is_cut = 0, unwinds = 0;
  for (int i = 2; i < argc; i++) {
    is_data |= strcmp(argv[i], "data") == 0;
    is_cut |= strcmp(argv[i], "cut") == 0;
    unwinds |= strcmp(argv[i], "unwind") == 0;
  }
  char path[4096];
  snprintf(path, sizeof path, "%s/jit-%d.dump", argc > 1 ? argv[1] : "/tmp", getpid());
  FILE* file = fopen(path, "w+");
  if (file == NULL || mmap(NULL, kRoom, is_data ? PROT_READ : PROT_READ | PROT_EXEC, MAP_PRIVATE,
                           fileno(file), 0) == MAP_FAILED)
    return 2;
  unsigned char* code =
      mmap(NULL, kRoom, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (code == MAP_FAILED)
    return 2;
  memcpy(code + kOuterAt, kOuter, sizeof kOuter);
  memcpy(code + kInnerAt, kInner, sizeof kInner);
  put_header(file);
  if (unwinds)
    put_unwinding(file, sizeof kOuter, 0x28);
  put_function(file, "made_outer", code + kOuterAt, sizeof kOuter);
  if (unwinds)
    put_unwinding(file, sizeof kInner, 0x48);
  put_function(file, "made_inner", code + kInnerAt, sizeof kInner);
  fflush(file);
  if (is_cut && ftruncate(fileno(file), ftell(file) - 5) != 0)
    return 2;
  printf("%d\n", getpid());
  fflush(stdout);
  void (*outer)(void);
  const unsigned char* start = code + kOuterAt;
  memcpy(&outer, &start, sizeof outer);
  for (;;)
    outer();
}
