"""From the wire to the domain: every bound of the contract becomes a refusal that names the field.

Paths are spelled as in the proto, from the request down: `operations[3].create.memory.content`.
"""
