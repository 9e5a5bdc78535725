# What the runtime needs of an operating system beyond POSIX: os.h, and an implementation for Linux and for all
# others, each empty on the other. The host and the ring link both.

OS := $(HERE)os/
OS_SOURCES := $(wildcard $(OS)*.c)
OS_HEADERS := $(wildcard $(OS)*.h)
