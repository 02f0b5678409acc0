-- Who may call, and for whom. `api_keys` is global because a key has to be found before its tenant is known;
-- every table of tenant data has tenant_id first in its primary key and in every unique constraint, so that the
-- schema distributes by tenant_id.

CREATE TABLE tenants (
  tenant_id text COLLATE "C" PRIMARY KEY,
  name text NOT NULL,
  -- The tenant's own connected account at the provider; null charges on the account of the configured credentials.
  connected_account text,
  created_at timestamptz NOT NULL DEFAULT now(),
  -- The provider key of a charge is `<tenant id>:<key>`, at most 255 characters there, and a key has up to 200.
  CONSTRAINT tenant_id_fits_the_provider_key CHECK (tenant_id ~ '^[A-Za-z0-9_-]{1,40}$')
);

-- Only the SHA-256 of a key is kept: keys are random and long, so a fast hash is enough.
CREATE TABLE api_keys (
  key_hash bytea PRIMARY KEY,
  tenant_id text COLLATE "C" NOT NULL REFERENCES tenants,
  role text NOT NULL CONSTRAINT api_key_role_is_known CHECK (role IN ('storefront', 'backend', 'admin')),
  label text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  revoked_at timestamptz
);
