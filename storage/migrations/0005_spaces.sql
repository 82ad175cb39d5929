-- Spaces of vectors: which model made them, how, and which one answers. Fed by thalweg.derived.v1.

CREATE TABLE spaces (
    space VARCHAR PRIMARY KEY, embedder VARCHAR NOT NULL, model_id VARCHAR NOT NULL, revision VARCHAR NOT NULL, dim INTEGER NOT NULL,
    dtype VARCHAR NOT NULL, max_tokens INTEGER NOT NULL, pooling VARCHAR NOT NULL, query_prefix VARCHAR NOT NULL,
    document_prefix VARCHAR NOT NULL, provider VARCHAR NOT NULL, is_trained BOOLEAN NOT NULL, state VARCHAR NOT NULL,
    registered_at TIMESTAMP NOT NULL, switched_at TIMESTAMP, dropped_at TIMESTAMP,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL);
CREATE TABLE live_spaces (
    kind VARCHAR PRIMARY KEY, space VARCHAR NOT NULL, switched_at TIMESTAMP NOT NULL,
    namespace VARCHAR NOT NULL, topic VARCHAR NOT NULL, partition INTEGER NOT NULL, "offset" BIGINT NOT NULL, event_id VARCHAR NOT NULL);

-- the registry with what each space holds; a space that nobody registered has vectors from elsewhere and never answers
CREATE VIEW embedding_spaces AS
WITH held AS (
    SELECT space, any_value(model_id) AS model_id, any_value(dim) AS dim, any_value(dtype) AS dtype,
           any_value(is_trained) AS is_trained, count(*) AS vectors
    FROM embeddings GROUP BY space)
SELECT coalesce(s.space, h.space) AS space, coalesce(s.state, 'foreign') AS state, coalesce(h.vectors, 0) AS vectors,
       coalesce(s.model_id, h.model_id) AS model_id, s.revision, coalesce(s.dim, h.dim) AS dim, coalesce(s.dtype, h.dtype) AS dtype,
       s.max_tokens, s.pooling, s.query_prefix, s.document_prefix, s.provider, coalesce(s.is_trained, h.is_trained) AS is_trained,
       s.embedder, s.registered_at, s.switched_at, s.dropped_at
FROM spaces s FULL OUTER JOIN held h ON h.space = s.space;
