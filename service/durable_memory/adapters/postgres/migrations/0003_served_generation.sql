-- What each configured provider was last found to make, so that a server whose provider does not answer when it starts
-- knows which vectors sessions are to be bound to. `configuration_digest` stands for what the settings say of the
-- provider; credentials are no part of it. The one table beside the namespaces: it holds nothing of what they hold.
CREATE TABLE served_generation (
    configuration_digest hex_digest PRIMARY KEY,
    provider identifier NOT NULL,
    model text COLLATE "C" NOT NULL CHECK (model <> ''),
    revision text COLLATE "C" NOT NULL,
    dimension integer NOT NULL CHECK (dimension > 0),
    normalization identifier NOT NULL,
    metric identifier NOT NULL,
    text_form text COLLATE "C" NOT NULL,
    similarity_floor double precision NOT NULL,
    authority_digest hex_digest NOT NULL,
    recorded_at timestamptz NOT NULL
);
