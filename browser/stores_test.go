package browser

import (
	"testing"

	"github.com/chromedp/cdproto/storage"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// What was stored is there after a reload, and after the tab's process has died.
func TestIndexedDBKeepsWhatWasStored(t *testing.T) {
	origin := site(t)
	p := visit(t, origin)
	require.Equal(t, "undefined|undefined", with[string](p, `
		window.store = p.indexedDBStore('state');
		const found = await loaded(store);
		await store.append(bytes('a'));
		await store.append(bytes('b'));
		return found;`))
	p.do(chromedp.Reload())
	require.Equal(t, "undefined|ab", with[string](p, `
		window.store = p.indexedDBStore('state');
		const found = await loaded(store);
		await store.replace(bytes('AB'));
		await store.append(bytes('c'));
		await store.append(bytes('d'));
		return found;`))
	p.crash()
	p = visit(t, origin)
	require.Equal(t, "AB|cd", with[string](p, `return loaded(p.indexedDBStore('state'))`))
	require.Equal(t, "undefined|undefined", with[string](p, `return loaded(p.indexedDBStore('other'))`))
}

// A tab that was overtaken stores nothing, and nothing of what was there is touched.
func TestIndexedDBOfATabThatWasOvertakenStoresNothing(t *testing.T) {
	origin := site(t)
	old, young := visit(t, origin), visit(t, origin)
	with[any](old, `window.store = p.indexedDBStore('state'); await store.load(); await store.append(bytes('a'))`)
	require.Equal(t, "undefined|a", with[string](young, `window.store = p.indexedDBStore('state'); return loaded(store)`))
	require.Equal(t, "taken", with[string](old, `return code(store.append(bytes('b')))`))
	require.Equal(t, "taken", with[string](old, `return code(store.replace(bytes('B')))`))
	with[any](young, `await store.append(bytes('c'))`)
	require.Equal(t, "undefined|ac", with[string](old, `return loaded(store)`), "until it loads again")
	require.Equal(t, "taken", with[string](young, `return code(store.append(bytes('d')))`))
}

// Without room nothing of an append is stored; once there is room it goes on.
func TestIndexedDBWithoutRoomIsFull(t *testing.T) {
	origin := site(t)
	p := visit(t, origin)
	little := 300_000.
	p.do(quota(origin, &little)) // before the first use, since the browser asks seldom how much room there is
	with[any](p, `window.store = p.indexedDBStore('state'); await store.load(); await store.append(bytes('a'))`)
	require.Equal(t, []string{"full", "full"}, with[[]string](p, `
		const much = new Uint8Array(1_000_000); // of noise, since the browser packs what it stores
		for (let at = 0; at < much.length; at += 50_000) crypto.getRandomValues(much.subarray(at, at + 50_000));
		return [await code(store.append(much)), await code(store.replace(much))];`))
	p.do(quota(origin, nil))
	require.Equal(t, "undefined|ab", with[string](p, `await store.append(bytes('b')); return loaded(p.indexedDBStore('state'))`))
}

// Data that a user or the browser has deleted is missed, before a record gets
// where those before it are not; a snapshot mends it.
func TestIndexedDBThatWasDeletedIsMissed(t *testing.T) {
	origin := site(t)
	for name, deletion := range map[string]func(*tab){
		"by the browser": func(p *tab) {
			p.do(call(storage.ClearDataForOrigin, storage.ClearDataForOriginParams{Origin: origin, StorageTypes: "indexeddb"}))
		},
		"by a script": func(p *tab) {
			with[any](p, `await new Promise((resolve, reject) => Object.assign(indexedDB.deleteDatabase('state'), { onsuccess: resolve, onerror: reject, onblocked: reject }))`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := visit(t, origin)
			with[any](p, `window.store = p.indexedDBStore('state'); await store.load(); await store.append(bytes('a'))`)
			deletion(p)
			require.Equal(t, "damaged", with[string](p, `return code(store.append(bytes('b')))`))
			require.Equal(t, "damaged", with[string](p, `return code(store.append(bytes('b')))`))
			require.Equal(t, "AB|c", with[string](p, `
				await store.replace(bytes('AB'));
				await store.append(bytes('c'));
				return loaded(p.indexedDBStore('state'));`))
		})
	}
}

// A database that is no state, or that of a later version, is refused as it is.
func TestIndexedDBThatIsNoneOfOursIsRefused(t *testing.T) {
	p := visit(t, site(t))
	const made = `const make = (version, work) => new Promise((resolve, reject) => Object.assign(indexedDB.open('state', version), {
		onupgradeneeded: e => work(e.target.result, e.target.transaction), onerror: reject, onsuccess: e => { e.target.result.close(); resolve(); } }));
	const remove = () => new Promise((resolve, reject) => Object.assign(indexedDB.deleteDatabase('state'), { onsuccess: resolve, onerror: reject }));`
	require.Equal(t, "newer", with[string](p, made+`await make(2, () => {}); return code(p.indexedDBStore('state').load())`))
	require.Equal(t, "damaged", with[string](p, made+`await remove(); await make(1, () => {}); return code(p.indexedDBStore('state').load())`))
	require.Equal(t, "damaged", with[string](p, made+`await remove(); await make(1, db => {
		db.createObjectStore('state');
		db.createObjectStore('log', { autoIncrement: true }).add('a text');
	}); return code(p.indexedDBStore('state').load())`))
	require.Equal(t, []string{"unavailable", "unavailable"}, with[[]string](p, made+`await remove();
		const store = p.indexedDBStore('state'), before = await code(store.append(bytes('a')));
		await store.load();
		await store.close();
		return [before, await code(store.append(bytes('a')))];`))
	require.Equal(t, "TypeError", with[string](p, `try { p.indexedDBStore(7) } catch (e) { return e.name }`))
}

// leads has a tab wait for the lead, and answers as its name what it is asked.
func leads(p *tab, name string) {
	p.t.Helper()
	with[any](p, `
		window.leadership = p.webLocks('app');
		window.over = new AbortController();
		window.term = leadership.acquire(over.signal).then(term => {
			term.serve(async ({ op }) => '`+name+` did ' + op);
			term.lost.then(() => { window.lost = true });
			return term;
		})`)
}

// A tab whose process dies, that is closed, or that leaves the page leads no
// more; the next in line does, and answers what was asked meanwhile.
func TestWebLocksGoToTheNextTabWhateverEndsOne(t *testing.T) {
	origin := site(t)
	const askLeader = `return leadership.ask({ op: 'lookup', request: {} })`
	tabs := make([]*tab, 5)
	for i, name := range []string{"a", "b", "c", "d", "e"} {
		tabs[i] = visit(t, origin)
		leads(tabs[i], name)
	}
	asks := tabs[4]
	require.Equal(t, "a did lookup", with[string](asks, askLeader))
	tabs[0].crash()
	with[any](tabs[1], `await term`)
	require.Equal(t, "b did lookup", with[string](asks, askLeader))
	tabs[1].do(chromedp.Navigate("about:blank"))
	with[any](tabs[2], `await term`)
	require.Equal(t, "c did lookup", with[string](asks, askLeader))
	tabs[2].shut()
	with[any](tabs[3], `await term`)
	require.Equal(t, "d did lookup", with[string](asks, askLeader))
	require.True(t, with[bool](tabs[3], `leadership.resign(); return !leadership.leads`))
	require.True(t, with[bool](asks, `await term; return leadership.leads`))
}

// A stolen lock ends the term at once.
func TestWebLocksThatAreStolenAreLost(t *testing.T) {
	origin := site(t)
	p, thief := visit(t, origin), visit(t, origin)
	leads(p, "a")
	with[any](p, `await term`)
	with[any](thief, `await new Promise(held => navigator.locks.request('tickonce:app', { steal: true }, () => new Promise(() => held())))`)
	require.Equal(t, []bool{true, false}, with[[]bool](p, `await (await term).lost; return [lost, leadership.leads]`))
}
