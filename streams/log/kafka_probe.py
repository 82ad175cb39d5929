"""Why a Kafka refuses a connection: its clients only say that no broker answered."""

from __future__ import annotations

import asyncio
import ssl

from aiokafka.conn import create_conn
from aiokafka.errors import IllegalSaslStateError, KafkaError, SaslAuthenticationFailed, UnsupportedSaslMechanismError

from streams.log.kafka_security import PREFIX, KafkaSecurity

PROBE_S = 3.0


async def why_refused(bootstrap: str, security: KafkaSecurity) -> str | None:
    """A sentence that names the setting to correct; None when the first broker is away or accepts."""
    address = bootstrap.split(",")[0]
    host, _, port = address.rpartition(":")
    try:
        async with asyncio.timeout(PROBE_S):
            connection = await create_conn(
                host.strip("[]"), int(port), request_timeout_ms=int(PROBE_S * 1000), **security.options()
            )
    except ssl.SSLCertVerificationError as error:
        if "name" in error.verify_message.lower() or "ip address" in error.verify_message.lower():
            return (
                f"The certificate of {address} is another host's ({error.verify_message}): "
                "use the name that it was made for."
            )
        return (
            f"The certificate of {address} is not from an authority that is trusted here ({error.verify_message}): "
            f"set {PREFIX}CA_FILE to the PEM file of the broker's own."
        )
    except ssl.SSLError:
        return (
            f"{address} does not speak TLS, which {PREFIX}PROTOCOL={security.protocol} needs: "
            "set the protocol of that listener."
        )
    except SaslAuthenticationFailed:
        return (
            f"Kafka at {address} refuses the user {security.username!r} or its password: "
            f"correct {PREFIX}USERNAME, {PREFIX}PASSWORD or {PREFIX}MECHANISM (now {security.mechanism})."
        )
    except (UnsupportedSaslMechanismError, IllegalSaslStateError):
        return (
            f"Kafka at {address} does not take passwords by {security.mechanism} there: "
            f"correct {PREFIX}MECHANISM or {PREFIX}PROTOCOL."
        )
    except (KafkaError, OSError, TimeoutError, ValueError):
        return None
    connection.close()
    return None
