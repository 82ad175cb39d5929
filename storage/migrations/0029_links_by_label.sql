-- What else is said of an entity is looked for among the vectors, which know labels: of 100,000 links they are read in 2 ms, and worked out from the ids in 100.
ALTER TABLE valence_belief_entities ADD COLUMN label BIGINT;
UPDATE valence_belief_entities l SET label = b.label FROM valence_beliefs b WHERE b.namespace = l.namespace AND b.belief_id = l.belief_id;
