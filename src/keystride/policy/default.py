"""The policy that commands take when none is named."""

DEFAULT_POLICY = "go2-pose"
