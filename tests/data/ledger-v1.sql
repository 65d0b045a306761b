BEGIN TRANSACTION;
CREATE TABLE curator_answers (
	person TEXT NOT NULL,
	"key" TEXT NOT NULL,
	request TEXT NOT NULL,
	reservation TEXT NOT NULL,
	"when" TEXT NOT NULL,
	content_type TEXT NOT NULL,
	content BLOB NOT NULL,
	PRIMARY KEY (person, "key"),
	FOREIGN KEY(person) REFERENCES curator_people (name)
);
CREATE TABLE curator_datasets (
	name TEXT NOT NULL,
	place TEXT NOT NULL,
	schema TEXT NOT NULL,
	made TEXT NOT NULL,
	PRIMARY KEY (name)
);
INSERT INTO "curator_datasets" VALUES('visits','{"path": "/rows/visits.csv"}','# Public facts about a table: nothing in this file may be known only from its private rows.

person = "patient_id"
rows_per_person = 40

[target]
name = "class"
classes = ["a", "b"]

[attributes.smoker]
kind = "categorical"
values = ["no", "yes"]
','2026-11-16T02:24:17Z');
INSERT INTO "curator_datasets" VALUES('others','{"path": "/rows/visits.csv"}','# Public facts about a table: nothing in this file may be known only from its private rows.

person = "patient_id"
rows_per_person = 40

[target]
name = "class"
classes = ["a", "b"]

[attributes.smoker]
kind = "categorical"
values = ["no", "yes"]
','2026-11-16T02:24:17Z');
CREATE TABLE curator_grants (
	id INTEGER NOT NULL,
	analyst TEXT NOT NULL,
	dataset TEXT NOT NULL,
	purpose TEXT NOT NULL,
	made TEXT NOT NULL,
	withdrawn TEXT,
	PRIMARY KEY (id),
	FOREIGN KEY(analyst) REFERENCES curator_people (name),
	FOREIGN KEY(dataset) REFERENCES curator_datasets (name)
);
CREATE TABLE curator_people (
	name TEXT NOT NULL,
	role TEXT NOT NULL CHECK (role IN ('owner', 'analyst')),
	made TEXT NOT NULL,
	PRIMARY KEY (name)
);
CREATE TABLE curator_tokens (
	id TEXT NOT NULL,
	person TEXT NOT NULL,
	hash TEXT NOT NULL,
	made TEXT NOT NULL,
	expires TEXT NOT NULL,
	revoked TEXT,
	PRIMARY KEY (id),
	FOREIGN KEY(person) REFERENCES curator_people (name),
	UNIQUE (hash)
);
CREATE TABLE hedgerow_schema (
	version INTEGER NOT NULL,
	PRIMARY KEY (version)
);
INSERT INTO "hedgerow_schema" VALUES(1);
CREATE TABLE ledger_balances (
	dataset TEXT NOT NULL,
	scope TEXT NOT NULL,
	name TEXT NOT NULL,
	ceiling_epsilon TEXT,
	ceiling_delta TEXT,
	spent_epsilon TEXT NOT NULL,
	spent_delta TEXT NOT NULL,
	closed BOOLEAN NOT NULL,
	PRIMARY KEY (dataset, scope, name)
);
INSERT INTO "ledger_balances" VALUES('visits','dataset','','2','0.00001','0.375','0.000001',0);
INSERT INTO "ledger_balances" VALUES('visits','analyst','ada','1','0.00001','0.375','0.000001',0);
INSERT INTO "ledger_balances" VALUES('visits','purpose','research',NULL,NULL,'0.375','0.000001',0);
INSERT INTO "ledger_balances" VALUES('visits','analyst','bob',NULL,NULL,'0','0',0);
INSERT INTO "ledger_balances" VALUES('visits','purpose','care',NULL,NULL,'0','0',0);
INSERT INTO "ledger_balances" VALUES('others','dataset','','1','0','0','0',0);
CREATE TABLE ledger_entries (
	seq INTEGER NOT NULL,
	"when" TEXT NOT NULL,
	kind TEXT NOT NULL,
	"key" TEXT,
	dataset TEXT NOT NULL,
	analyst TEXT,
	purpose TEXT,
	what TEXT NOT NULL,
	epsilon TEXT,
	delta TEXT,
	previous TEXT NOT NULL,
	hash TEXT NOT NULL,
	PRIMARY KEY (seq)
);
INSERT INTO "ledger_entries" VALUES(1,'2026-11-16T02:24:17Z','ceiling',NULL,'visits',NULL,NULL,'the year','2','0.00001','0000000000000000000000000000000000000000000000000000000000000000','17fc466db7d4f79ee06d242623ecdb125db45c7b6de21e1c1321681abd665777');
INSERT INTO "ledger_entries" VALUES(2,'2026-11-16T02:24:17Z','ceiling',NULL,'visits','ada',NULL,'','1','0.00001','17fc466db7d4f79ee06d242623ecdb125db45c7b6de21e1c1321681abd665777','a11a4c5aec683700ba5b6c58886cd0ff0620c54c2b2d733b2433cce1495d514b');
INSERT INTO "ledger_entries" VALUES(3,'2026-11-16T02:24:17Z','reserve','first','visits','ada','research','fit hedgerow','0.5','0','a11a4c5aec683700ba5b6c58886cd0ff0620c54c2b2d733b2433cce1495d514b','6b6bcc77e401a2d29688f6f54b868f0fe507c097249c97e08b511e7429caf37f');
INSERT INTO "ledger_entries" VALUES(4,'2026-11-16T02:24:17Z','open','first','visits','ada','research','fit hedgerow',NULL,NULL,'6b6bcc77e401a2d29688f6f54b868f0fe507c097249c97e08b511e7429caf37f','34f4b9134fcdc218647a90ee0b397467f562c23bd53c3b506c91e0b538832b2d');
INSERT INTO "ledger_entries" VALUES(5,'2026-11-16T02:24:17Z','settle','first','visits','ada','research','fit hedgerow','0.25','0','34f4b9134fcdc218647a90ee0b397467f562c23bd53c3b506c91e0b538832b2d','e5a241a38303bdc23a8e1118bcf258de549d933c44dc69fe29d8334bf9a7f5c9');
INSERT INTO "ledger_entries" VALUES(6,'2026-11-16T02:24:17Z','reserve','second','visits','ada','research','fit, crashed','0.125','0.000001','e5a241a38303bdc23a8e1118bcf258de549d933c44dc69fe29d8334bf9a7f5c9','fd8300b50f3c3f2a203c24fd793d8dd5f7d05b3190d35fa091b344ed51d2d952');
INSERT INTO "ledger_entries" VALUES(7,'2026-11-16T02:24:17Z','open','second','visits','ada','research','fit, crashed',NULL,NULL,'fd8300b50f3c3f2a203c24fd793d8dd5f7d05b3190d35fa091b344ed51d2d952','23b73ab52ddc7c583b88e18628c63b24b63c6fa9564bab6bf79e73d61a1f6869');
INSERT INTO "ledger_entries" VALUES(8,'2026-11-16T02:24:17Z','reserve','third','visits','bob','care','a request','0.25','0','23b73ab52ddc7c583b88e18628c63b24b63c6fa9564bab6bf79e73d61a1f6869','22cf1c10072cd9915a9481034bb4969ebe0af533113238196dc185f4a693b664');
INSERT INTO "ledger_entries" VALUES(9,'2026-11-16T02:24:17Z','release','third','visits','bob','care','a request','0','0','22cf1c10072cd9915a9481034bb4969ebe0af533113238196dc185f4a693b664','4985ab38a38d7eb8d9612aab78a16fc5f8053f0ef602a5520786717915838801');
INSERT INTO "ledger_entries" VALUES(10,'2026-11-16T02:24:18Z','ceiling',NULL,'others',NULL,NULL,'','1','0','4985ab38a38d7eb8d9612aab78a16fc5f8053f0ef602a5520786717915838801','c1ed0e421707035cac5846abe8c07858e459ccbed75094b752e8e27f43f699fc');
CREATE TABLE ledger_head (
	id INTEGER NOT NULL CHECK (id = 1),
	seq INTEGER NOT NULL,
	hash TEXT NOT NULL,
	PRIMARY KEY (id)
);
INSERT INTO "ledger_head" VALUES(1,10,'c1ed0e421707035cac5846abe8c07858e459ccbed75094b752e8e27f43f699fc');
CREATE INDEX ledger_entries_of_whom ON ledger_entries (dataset, analyst, purpose);
CREATE UNIQUE INDEX ledger_entries_once ON ledger_entries ("key", kind);
CREATE INDEX ledger_entries_reserved ON ledger_entries (dataset, seq) WHERE kind = 'reserve';
CREATE INDEX curator_grants_of_whom ON curator_grants (analyst, dataset, purpose);
CREATE INDEX curator_answers_paid_by ON curator_answers (reservation);
CREATE TRIGGER ledger_entries_at_the_end BEFORE INSERT ON ledger_entries
    WHEN NEW.seq IS NOT (SELECT coalesce(max(seq), 0) + 1 FROM ledger_entries)
      OR EXISTS (SELECT 1 FROM ledger_entries WHERE key = NEW.key AND kind = NEW.kind)
    BEGIN SELECT RAISE(ABORT, 'entries of the ledger are added at its end, and never changed or removed'); END;
CREATE TRIGGER ledger_entries_unchanged BEFORE UPDATE ON ledger_entries BEGIN SELECT RAISE(ABORT, 'entries of the ledger are added at its end, and never changed or removed'); END;
CREATE TRIGGER ledger_entries_kept BEFORE DELETE ON ledger_entries BEGIN SELECT RAISE(ABORT, 'entries of the ledger are added at its end, and never changed or removed'); END;
COMMIT;
