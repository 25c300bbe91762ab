-- What each configured provider was last found to make, so that a server whose provider does not answer when it starts
-- knows which vectors sessions are to be bound to. `configuration_digest` stands for what the settings say of the
-- provider; credentials are no part of it. The one table beside the namespaces: it holds nothing of what they hold.
CREATE TABLE served_generations (
    configuration_digest TEXT    NOT NULL PRIMARY KEY CHECK (length(configuration_digest) = 64),
    provider             TEXT    NOT NULL CHECK (provider <> ''),
    model                TEXT    NOT NULL CHECK (model <> ''),
    revision             TEXT    NOT NULL,
    dimension            INTEGER NOT NULL CHECK (dimension > 0),
    normalization        TEXT    NOT NULL,
    metric               TEXT    NOT NULL,
    text_form            TEXT    NOT NULL,
    similarity_floor     REAL    NOT NULL,
    authority_digest     TEXT    NOT NULL CHECK (length(authority_digest) = 64),
    recorded_at          INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
