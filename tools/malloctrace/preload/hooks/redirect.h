// Redirects the calls of allocators in a program that runs already.
//
// The dynamic linker has written the addresses of malloc and the others into each object that calls
// them (relocations).  We write those of our hooks there instead, each by one store, so that other
// threads need not stop.  A place is changed only if it holds the address that the hook calls, or
// if the linker has not written it yet; so it can be restored exactly.
//
// The functions of our own dynamic symbol table are the hooks.  Those that start programs are left
// out: another program does not have the library.
// SPDX-License-Identifier: MIT
#pragma once

namespace pe::malloctrace {

/// Redirects the calls of all loaded objects.  The real functions must be known.
void redirect_objects() noexcept;
/// The same if objects were loaded since; other calls cost little.  Returns at once if another
/// thread does so.
void redirect_new_objects() noexcept;
/// Returns a handle (dlopen(3)) of the first library that is loaded; nullptr if there is none.
void* find_first_library() noexcept;
/// Restores the calls of all loaded objects.
void restore_objects() noexcept;

}  // namespace pe::malloctrace
