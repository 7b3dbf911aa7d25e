// profile-push: profiles into a folder, and from there to a server that keeps them.
// SPDX-License-Identifier: MIT
#include "base/cli/run.h"
#include "profile-push/profile_push.h"

int main(int argc, char** argv) { return pe::run_main(pe::kProfilePush, argc, argv); }
