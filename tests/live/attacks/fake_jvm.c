// Looks like many JVMs to a recorder: each has the largest tables of structures, and no readable
// version.
//
// usage: program PROCESSES, linked with a libjvm.so that is this file, built with -DLIBRARY
//
// Source: OpenJDK, src/hotspot/share/runtime/vmStructs.hpp.
// SPDX-License-Identifier: MIT
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

void make_tables(void);

#ifdef LIBRARY
enum { kEntries = 20000, kTextBytes = 200 };
struct entry {
  const char *type, *field;
  long is_static;
  unsigned long offset;
  const void* address;
};
static struct entry entries[kEntries + 1];

#define NUMBER(name, value)  \
  extern unsigned long name; \
  unsigned long name = value
#define TABLE(name)          \
  extern struct entry* name; \
  struct entry* name = entries
TABLE(gHotSpotVMStructs);
NUMBER(gHotSpotVMStructEntryTypeNameOffset, 0);
NUMBER(gHotSpotVMStructEntryFieldNameOffset, 8);
NUMBER(gHotSpotVMStructEntryIsStaticOffset, 16);
NUMBER(gHotSpotVMStructEntryOffsetOffset, 24);
NUMBER(gHotSpotVMStructEntryAddressOffset, 32);
NUMBER(gHotSpotVMStructEntryArrayStride, 40);
TABLE(gHotSpotVMTypes);
NUMBER(gHotSpotVMTypeEntryTypeNameOffset, 0);
NUMBER(gHotSpotVMTypeEntrySizeOffset, 24);
NUMBER(gHotSpotVMTypeEntryArrayStride, 40);
TABLE(gHotSpotVMIntConstants);
NUMBER(gHotSpotVMIntConstantEntryNameOffset, 0);
NUMBER(gHotSpotVMIntConstantEntryValueOffset, 24);
NUMBER(gHotSpotVMIntConstantEntryArrayStride, 40);

void make_tables(void) {
  char* texts = malloc((size_t)kEntries * kTextBytes);
  for (int i = 0; i < kEntries; ++i) {
    char* text = texts + (size_t)i * kTextBytes;
    memset(text, 'A', kTextBytes - 1);
    text[kTextBytes - 1] = '\0';
    const int number = i | 0x40404040;
    memcpy(text, &number, sizeof number);
    entries[i] = (struct entry){text, text, 0, 8, NULL};
  }
  static const char unreadable;
  entries[0] = (struct entry){"Abstract_VM_Version", "_vm_major_version", 1, 0,
                              &unreadable - (uintptr_t)&unreadable + 8};
}
#else
int main(int argc, char** argv) {
  if (argc < 2)
    return 2;
  make_tables();
  // Code without a file: a jump to itself.
  unsigned char* code =
      mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  code[0] = 0xeb;
  code[1] = 0xfe;
  const int processes = atoi(argv[1]);
  for (int i = 0; i < processes; ++i)
    if (fork() == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      alarm(60);
      nice(19);
      void (*spin)(void);
      memcpy(&spin, &code, sizeof spin);
      spin();
    }
  alarm(60);
  for (;;)
    pause();
}
#endif
