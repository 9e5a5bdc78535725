# What job libraries share: a library of the application's, on the header-only one.

TARGETS += $(OUT)/tame_permits.so

JOB := $(HERE)job/
$(OUT)/tame_permits.so: $(JOB)tame_permits.c $(addprefix $(HERE)../c_include/tame/,permits.h queue.h)
	$(Q)mkdir -p $(@D)
	$(Q)$(C) -fPIC -fvisibility=hidden -I$(ERTS_INCLUDE) -I$(HERE)../c_include $(SHARED) -o $@.new $< && mv $@.new $@
