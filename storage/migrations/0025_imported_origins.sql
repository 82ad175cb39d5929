-- Each belief back to the exchange that made it, recorded or imported. A belief of no recorded conversation, stated by a tool call
-- of a transcript, has the turn that made the call, and its session.
CREATE OR REPLACE VIEW belief_origins AS
SELECT b.belief_id, b.content, b.extraction_method, coalesce(s.session_id, r.session_id) AS session_id, i.insight_id,
       coalesce(x.exchange_id, r.exchange_id) AS exchange_id, coalesce(x.sequence, r.sequence) AS exchange_sequence,
       coalesce(x.content, r.content) AS exchange_content, o.request_id, c.invocation_id, c.tool_name, t.tool_call_id, t.event_id AS transcript_event_id,
       e.event_type, e.topic, e.partition, e."offset", e.event_id, b.created_at,
       b.status, coalesce(l.successor_id, b.belief_id) AS current_belief_id, coalesce(l.successor_content, b.content) AS current_content,
       coalesce(l.steps, 0) AS supersessions, b.namespace
FROM beliefs b
LEFT JOIN events e ON e.namespace = b.namespace AND e.event_id = b.created_event_id
LEFT JOIN valence_sources s ON s.namespace = b.namespace AND s.source_id = b.source_id
LEFT JOIN vkb_session_insights i ON i.namespace = b.namespace AND i.belief_id = b.belief_id AND i.event_id = b.created_event_id
LEFT JOIN (SELECT a.namespace, a.belief_id, arg_max(y.exchange_id, y.sequence) AS exchange_id
           FROM valence_beliefs a
           JOIN events d ON d.namespace = a.namespace AND d.event_id = a.created_event_id
           JOIN valence_sources z ON z.namespace = a.namespace AND z.source_id = a.source_id
           JOIN vkb_exchanges y ON y.namespace = a.namespace AND y.session_id = z.session_id AND y."offset" < d."offset"
           GROUP BY a.namespace, a.belief_id) n ON n.namespace = b.namespace AND n.belief_id = b.belief_id
LEFT JOIN vkb_exchanges x ON x.namespace = b.namespace AND x.exchange_id = coalesce(i.exchange_id, n.exchange_id)
LEFT JOIN outcomes o ON o.namespace = b.namespace AND o.event_id = b.created_event_id
LEFT JOIN (SELECT namespace, request_id, arg_min(invocation_id, started_at) AS invocation_id, arg_min(tool_name, started_at) AS tool_name
           FROM invocations WHERE request_id IS NOT NULL GROUP BY namespace, request_id) c
       ON c.namespace = o.namespace AND c.request_id = o.request_id
LEFT JOIN tool_calls t ON t.namespace = o.namespace AND t.tool_call_id = o.request_id
LEFT JOIN exchanges r ON r.namespace = t.namespace AND r.exchange_id = t.event_id AND r.origin = 'transcript' AND x.exchange_id IS NULL
LEFT JOIN belief_successors l ON l.namespace = b.namespace AND l.belief_id = b.belief_id AND l.is_current;
