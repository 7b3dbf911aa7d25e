// Executes a program with a new environment: KEPT=1 and nothing else.
// Usage: begins HOW PROGRAM ARGUMENT.  Returns the program's status; 99 if it could not execute the
// program.
// SPDX-License-Identifier: MIT
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char* environment[] = {"KEPT=1", NULL};

static void become(const char* how, char** arguments) {
  if (strcmp(how, "execve") == 0)
    execve(arguments[0], arguments, environment);
  else if (strcmp(how, "execle") == 0)
    execle(arguments[0], arguments[0], arguments[1], NULL, environment);
  else if (strcmp(how, "execvpe") == 0)
    execvpe(arguments[0], arguments, environment);
  else if (strcmp(how, "fexecve") == 0)
    fexecve(open(arguments[0], O_RDONLY | O_CLOEXEC), arguments, environment);
  else if (strcmp(how, "execveat") == 0)
    execveat(AT_FDCWD, arguments[0], arguments, environment, 0);
  environ = environment;
  if (strcmp(how, "execv") == 0)
    execv(arguments[0], arguments);
  else if (strcmp(how, "execvp") == 0)
    execvp(arguments[0], arguments);
  else if (strcmp(how, "execl") == 0)
    execl(arguments[0], arguments[0], arguments[1], NULL);
  else if (strcmp(how, "execlp") == 0)
    execlp(arguments[0], arguments[0], arguments[1], NULL);
}

int main(int argc, char** argv) {
  if (argc != 4)
    return 2;
  const char* how = argv[1];
  char** arguments = argv + 2;
  pid_t child = -1;
  if (strcmp(how, "posix_spawn") == 0) {
    if (posix_spawn(&child, arguments[0], NULL, NULL, arguments, environment) != 0)
      return 99;
  } else if (strcmp(how, "posix_spawnp") == 0) {
    if (posix_spawnp(&child, arguments[0], NULL, NULL, arguments, environment) != 0)
      return 99;
  } else if (strncmp(how, "vfork-", 6) == 0) {
    child = vfork();
    if (child == 0) {
      become(how + 6, arguments);
      _exit(99);
    }
  } else if (strncmp(how, "fork-", 5) == 0) {
    child = fork();
    if (child == 0) {
      become(how + 5, arguments);
      _exit(99);
    }
  } else {
    become(how, arguments);
    return 99;
  }
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 98;
}
