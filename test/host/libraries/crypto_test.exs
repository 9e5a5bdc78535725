defmodule Tame.Host.Libraries.CryptoTest do
  # crypto, unmodified, in a VM and in a host, as in libraries_test.exs.
  use ExUnit.Case, async: true

  import :proper_types, only: [any: 0, binary: 0, list: 1, oneof: 1]

  alias Tame.Property
  alias Tame.Test.{Host, Twin}

  describe "crypto" do
    setup do
      path = Host.library!(:crypto, "crypto")

      %{
        twin:
          Twin.installed!(
            :crypto,
            "crypto",
            :crypto,
            {302, Path.rootname(path), false},
            __ENV__.file
          )
      }
    end

    test "what it supports", %{twin: twin} do
      Twin.same(twin, fn call -> call.(:info_lib, []) end)

      for name <-
            ~w(hash_algorithms pubkey_algorithms mac_algorithms curve_algorithms rsa_opts_algorithms)a,
          do: Twin.same(twin, fn call -> call.(name, []) end)

      # Its order is that of the VM's atom table.
      {{:value, in_vm}, {:value, in_host}} =
        Twin.both(twin, fn call -> call.(:cipher_algorithms, []) end)

      assert Enum.sort(in_host) == Enum.sort(in_vm)
    end

    @hashes ~w(md5 sha sha224 sha256 sha384 sha512 sha3_256 sha3_512 blake2b blake2s ripemd160 no_such_hash)a

    test "hash, mac", %{twin: twin} do
      data = oneof([binary(), list(binary()), any()])

      Twin.check({oneof(@hashes), data}, twin, 500, fn call, {hash, data} ->
        call.(:hash_nif, [hash, data])
      end)

      Twin.check({oneof(@hashes), binary(), data}, twin, 500, fn call, {hash, key, data} ->
        call.(:mac_nif, [:hmac, hash, key, data])
      end)

      key = :binary.copy(<<7>>, 32)

      Twin.check(data, twin, 200, fn call, data ->
        call.(:mac_nif, [:poly1305, :undefined, key, data])
      end)

      Twin.check(data, twin, 200, fn call, data ->
        call.(:mac_nif, [:cmac, :aes_256_cbc, key, data])
      end)
    end

    test "a hash by and by", %{twin: twin} do
      Twin.check({oneof(@hashes), list(binary())}, twin, 500, fn call, {hash, parts} ->
        state = call.(:hash_init_nif, [hash])

        state =
          Enum.reduce(parts, state, fn part, state -> call.(:hash_update_nif, [state, part]) end)

        {call.(:hash_final_nif, [state]), call.(:hash_update_nif, [make_ref(), "x"])}
      end)
    end

    test "AEAD ciphers, both ways, and forged", %{twin: twin} do
      ciphers =
        oneof([
          {:aes_128_gcm, 16, 12},
          {:aes_256_gcm, 32, 12},
          {:chacha20_poly1305, 32, 12},
          {:aes_128_ccm, 16, 12}
        ])

      Twin.check({ciphers, binary(), binary()}, twin, 500, fn call,
                                                              {{cipher, key, iv}, text, aad} ->
        key = :binary.copy("k", key)
        iv = :binary.copy("i", iv)
        {crypted, tag} = call.(:aead_cipher_nif, [cipher, key, iv, text, aad, 12, true])
        back = call.(:aead_cipher_nif, [cipher, key, iv, crypted, aad, tag, false])
        forged = call.(:aead_cipher_nif, [cipher, key, iv, crypted, ["x", aad], tag, false])
        {crypted, tag, back, forged}
      end)
    end

    test "a cipher by and by", %{twin: twin} do
      Twin.check(list(binary()), twin, 500, fn call, parts ->
        state =
          call.(:ng_crypto_init_nif, [
            :aes_256_ctr,
            :binary.copy("k", 32),
            :binary.copy("i", 16),
            true
          ])

        for part <- parts, do: call.(:ng_crypto_update_nif, [state, part])
      end)
    end

    test "RSA and ECDSA: what one signs the other verifies", %{twin: twin} do
      {[e, n], [e, n, d | _]} = :crypto.generate_key(:rsa, {1024, 65_537})
      private = [e, n, d]

      Twin.check(binary(), twin, 250, fn call, text ->
        signature =
          call.(:pkey_sign_nif, [:rsa, :sha256, text, Enum.map(private, &as_binary/1), []])

        good =
          call.(:pkey_verify_nif, [
            :rsa,
            :sha256,
            text,
            signature,
            Enum.map([e, n], &as_binary/1),
            []
          ])

        bad =
          call.(:pkey_verify_nif, [
            :rsa,
            :sha256,
            text <> "x",
            signature,
            Enum.map([e, n], &as_binary/1),
            []
          ])

        {signature, good, bad}
      end)

      {public, private} = :crypto.generate_key(:ecdh, :secp256r1)
      curve = :crypto_ec_curves.curve(:secp256r1) |> named()

      Property.check(
        binary(),
        fn text ->
          signed = fn call ->
            call.(:pkey_sign_nif, [:ecdsa, :sha256, text, {curve, private}, []])
          end

          {{:value, in_vm}, {:value, in_host}} = Twin.both(twin, signed)

          for signature <- [in_vm, in_host] do
            {:value, true} =
              Twin.same(twin, fn call ->
                call.(:pkey_verify_nif, [:ecdsa, :sha256, text, signature, {curve, public}, []])
              end)
          end

          true
        end,
        numtests: 250
      )
    end

    defp as_binary(n) when is_integer(n), do: :binary.encode_unsigned(n)
    defp as_binary(b), do: b
    defp named(_), do: :crypto_ec_curves.curve(:secp256r1) |> prepend(:secp256r1)
    defp prepend(curve, name), do: {curve, name} |> then(fn {c, n} -> {normal(c), n} end)

    defp normal({{:prime_field, p}, {a, b, seed}, g, n, h}),
      do:
        {{:prime_field, as_binary(p)}, {as_binary(a), as_binary(b), seed}, as_binary(g),
         as_binary(n), as_binary(h)}
  end
end
