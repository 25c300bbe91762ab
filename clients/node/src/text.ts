/** Text that cannot be sent as what it is. */
import type { DescField, DescMessage } from "@bufbuild/protobuf";

/**
 * The path of the first text in a message that has half of a surrogate pair, such as `memory.labels[key]`: UTF-8 has no
 * form for it, and the encoder would silently put another character in its place. Undefined if there is none.
 */
export function notText(schema: DescMessage, message: object): string | undefined {
  for (const field of schema.fields) {
    const found = notTextIn(field, valueOf(field, message as Record<string, unknown>));
    if (found !== undefined) {
      return found;
    }
  }
  return undefined;
}

function valueOf(field: DescField, message: Record<string, unknown>): unknown {
  if (field.oneof === undefined) {
    return message[field.localName];
  }
  const chosen = message[field.oneof.localName] as { case?: string; value?: unknown } | undefined;
  return chosen?.case === field.localName ? chosen.value : undefined;
}

function notTextIn(field: DescField, value: unknown): string | undefined {
  const { name, message } = field;
  if (field.fieldKind === "list") {
    return first((value as unknown[]).entries(), ([index, item]) => notTextAt(`${name}[${index}]`, message, item));
  }
  if (field.fieldKind === "map") {
    return first(Object.entries(value as object), ([key, item]: [string, unknown]) =>
      key.isWellFormed() ? notTextAt(`${name}[${key}]`, message, item) : name,
    );
  }
  return notTextAt(name, message, value);
}

function notTextAt(path: string, schema: DescMessage | undefined, value: unknown): string | undefined {
  if (typeof value === "string") {
    return value.isWellFormed() ? undefined : path;
  }
  if (schema === undefined || value === undefined) {
    return undefined;
  }
  const inner = notText(schema, value as object);
  return inner === undefined ? undefined : `${path}.${inner}`;
}

function first<T>(items: Iterable<T>, find: (item: T) => string | undefined): string | undefined {
  for (const item of items) {
    const found = find(item);
    if (found !== undefined) {
      return found;
    }
  }
  return undefined;
}
