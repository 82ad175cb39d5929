-- What is in tension with a few beliefs is asked with each write of a belief and each answer that shows some. Where many beliefs are alike there are several
-- tensions for each, and without an index every one of them is read: 7 ms of 37,000, more with each. Composite keys are no help: DuckDB looks up single columns.
CREATE INDEX tension_findings_by_a ON tension_findings (belief_a_id);
CREATE INDEX tension_findings_by_b ON tension_findings (belief_b_id);
CREATE INDEX tension_findings_by_id ON tension_findings (tension_id);
