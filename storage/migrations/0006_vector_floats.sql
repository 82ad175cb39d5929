-- A stored vector as numbers, for questions to the store: each four bytes, the last first, are sign, exponent and fraction.
CREATE MACRO float_of(bits) AS
    ((CASE WHEN bits >= 2147483648 THEN -1 ELSE 1 END)
     * (CASE WHEN (bits >> 23) & 255 = 0 THEN (bits & 8388607) * pow(2, -149)
        ELSE (8388608 + (bits & 8388607)) * pow(2, ((bits >> 23) & 255) - 150) END))::FLOAT;
CREATE MACRO vector_floats(stored) AS
    list_transform(
        list_transform(range(octet_length(stored) // 4), lambda i: hex(array_slice(stored, 4 * i + 1, 4 * i + 4))),
        lambda h: float_of(('0x' || h[7:8] || h[5:6] || h[3:4] || h[1:2])::BIGINT));
