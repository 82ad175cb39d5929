-- whether both judges were asked (dual, spot) or the first alone (single)
ALTER TABLE judge_runs ADD COLUMN mode VARCHAR DEFAULT 'dual';
