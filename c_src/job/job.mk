# What the application does for job libraries, on the header-only one.

JOB_LIBRARIES := $(OUT)/tame_permits.so $(OUT)/tame_iovec.so
TARGETS += $(JOB_LIBRARIES)

JOB := $(HERE)job/
$(OUT)/tame_permits.so: $(addprefix $(HERE)../c_include/tame/,permits.h queue.h)
$(OUT)/tame_iovec.so: $(addprefix $(HERE)../c_include/tame/,charge.h clock.h cycles.h os.h slice.h)
$(JOB_LIBRARIES): $(OUT)/%.so: $(JOB)%.c
	$(Q)mkdir -p $(@D)
	$(Q)$(LINK) -fPIC -fvisibility=hidden -I$(ERTS_INCLUDE) -I$(HERE)../c_include $(SHARED) -o $@.new $< && mv $@.new $@
