-- Automatic capture: which signal of a turn made an insight, and how many a session has had. NULL: none, as in sessions from before.
ALTER TABLE vkb_session_insights ADD COLUMN signal VARCHAR;
ALTER TABLE vkb_sessions ADD COLUMN capture_count BIGINT;
