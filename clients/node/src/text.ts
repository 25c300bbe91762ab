/** Text that cannot be sent as what it is. */

// With the flag u, the halves of a pair do not match.
const LONE_SURROGATE = /\p{Surrogate}/u;

/**
 * Refuses half of a surrogate pair anywhere in a message: UTF-8 has no form for it, and the encoder would silently put
 * another character in its place.
 *
 * @throws RangeError, which names the field.
 */
export function checkText(value: unknown, field = ""): void {
  if (typeof value === "string") {
    if (LONE_SURROGATE.test(value)) {
      throw new RangeError(`${field} has a lone surrogate, which is no character`);
    }
  } else if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      checkText(item, `${field}[${index}]`);
    }
  } else if (typeof value === "object" && value !== null && !ArrayBuffer.isView(value)) {
    for (const [name, item] of Object.entries(value)) {
      checkText(name, field);
      checkText(item, field === "" ? name : `${field}.${name}`);
    }
  }
}
