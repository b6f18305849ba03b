// A macro makes the names.
#define KERNEL(name) extern "C" int Made##name(int, void **, int *, long **, const char **, void *, void *)

KERNEL(Up) { return 0; }
